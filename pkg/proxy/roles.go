package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// What is counted here is never less than what kcp decodes: keys count in upper and in lower case, and a key must not
// occur twice, because a decoder can put the elements of two lists together. Nothing of the body is kept.

// actions is the number of actions that the rules of a role permit.
type actions int

// add adds those of a rule. It refuses a role with too many.
func (n *actions) add(rule tenancy.RuleLengths) error {
	if *n += actions(rule.Actions(tenancy.MaxRuleActions)); *n <= tenancy.MaxRuleActions {
		return nil
	}
	return errs.UnprocessableField("rules", fmt.Sprintf("the rules of a role permit at most %d actions: "+
		"the API groups of a rule, times its resources, times its verbs, times its resource names; "+
		"list fewer in a rule, or make several roles", tenancy.MaxRuleActions))
}

// inJSON returns the number of actions that the rules of a role permit. It refuses a role with too many.
func inJSON(body []byte) (permitted actions, err error) {
	d := &jsonReader{json.NewDecoder(bytes.NewReader(body))}
	if open, err := d.next(); err != nil || open != json.Delim('{') {
		return 0, unreadableRole()
	}
	err = d.members(func(key string) (known string, err error) {
		if !strings.EqualFold(key, "rules") {
			return "", d.skip()
		}
		return "rules", permitted.addFrom(d)
	})
	return permitted, err
}

// addFrom adds those of the list of rules that comes next.
func (n *actions) addFrom(d *jsonReader) error {
	return d.elements(func(element json.Token) error {
		var rule tenancy.RuleLengths
		if element == json.Delim('{') {
			var err error
			if rule, err = d.rule(); err != nil {
				return err
			}
		}
		return n.add(rule)
	})
}

// addAll adds those of a list of rules.
func (n *actions) addAll(list []byte) error {
	return n.addFrom(&jsonReader{json.NewDecoder(bytes.NewReader(list))})
}

// checkJSONPatch refuses a JSON patch of single rules: what many small ones add to a role cannot be seen in any of them. One
// that sets all rules, as that of Terraform for a Role, is counted. Decoders of JSON patches ignore what precedes the first
// slash.
func checkJSONPatch(body []byte) error {
	d := &jsonReader{json.NewDecoder(bytes.NewReader(body))}
	var permitted actions
	touches := false
	err := d.elements(func(element json.Token) error {
		if element != json.Delim('{') {
			return unreadableRole()
		}
		change, err := d.change()
		if err != nil {
			return err
		}
		touches = touches || change.touches && !change.setsAll()
		for _, value := range change.values {
			if err := permitted.addAll(value); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && touches {
		return errs.UnprocessableField("rules", "a JSON patch of single rules is not accepted, because the hub counts what all rules "+
			"of a role permit; send all rules in a merge patch (kubectl patch --type=merge), or as the value of /rules")
	}
	return err
}

// patchChange is what a JSON patch does in one place.
type patchChange struct {
	// ops and paths are what the change does and where. They are more than one if a key occurs twice.
	ops, paths []string
	// touches is true if the change reads or writes rules, or all of the role.
	touches bool
	// values are the lists that it writes.
	values []json.RawMessage
}

// setsAll reports whether the change replaces all rules by its value.
func (c patchChange) setsAll() bool {
	return len(c.ops) == 1 && (c.ops[0] == "add" || c.ops[0] == "replace") && len(c.paths) == 1 && c.paths[0] == "/rules"
}

// change reads a change that has begun.
func (d *jsonReader) change() (c patchChange, err error) {
	err = d.members(func(key string) (string, error) {
		name := strings.ToLower(key)
		switch name {
		case "value":
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return "", unreadableRole()
			}
			if bytes.HasPrefix(value, []byte("[")) {
				c.values = append(c.values, value)
			}
			return name, nil
		case "op", "path", "from":
		default:
			return "", d.skip()
		}
		token, err := d.next()
		if _, nested := token.(json.Delim); nested || err != nil {
			return "", unreadableRole()
		}
		text, _ := token.(string)
		if name == "op" {
			c.ops = append(c.ops, text)
			return name, nil
		}
		c.paths = append(c.paths, text)
		_, below, found := strings.Cut(text, "/")
		first, _, _ := strings.Cut(below, "/")
		c.touches = c.touches || !found || first == "rules"
		return name, nil
	})
	return c, err
}

// jsonReader reads a JSON text in pieces.
type jsonReader struct{ *json.Decoder }

func (d *jsonReader) next() (json.Token, error) {
	token, err := d.Token()
	if err != nil {
		return nil, unreadableRole()
	}
	return token, nil
}

// skip passes over a value.
func (d *jsonReader) skip() error {
	var ignored nothing
	if d.Decode(&ignored) != nil {
		return unreadableRole()
	}
	return nil
}

// nothing decodes every value.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }

// members reads the members of an object that has begun. read reads the value of each, and returns the name of a field
// that it knows, which must not occur again.
func (d *jsonReader) members(read func(key string) (known string, err error)) error {
	seen := map[string]bool{}
	for d.More() {
		key, err := d.next()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		known, err := read(name)
		if err != nil {
			return err
		}
		if known != "" && seen[known] {
			return errs.UnprocessableField(known, "this field occurs twice")
		}
		seen[known] = true
	}
	_, err := d.next()
	return err
}

// elements reads a list. read is called with the first token of each element and reads the rest of it. Everything but a
// list and an object has no elements.
func (d *jsonReader) elements(read func(json.Token) error) error {
	open, err := d.next()
	if err != nil {
		return err
	}
	if open != json.Delim('[') {
		if open == json.Delim('{') {
			return unreadableRole()
		}
		return nil
	}
	for d.More() {
		element, err := d.next()
		if err != nil {
			return err
		}
		if element == json.Delim('[') {
			return unreadableRole()
		}
		if err := read(element); err != nil {
			return err
		}
	}
	_, err = d.next()
	return err
}

// rule reads a rule that has begun.
func (d *jsonReader) rule() (l tenancy.RuleLengths, err error) {
	lists := map[string]*int{
		"apigroups": &l.Groups, "resources": &l.Resources, "verbs": &l.Verbs, "resourcenames": &l.Names, "nonresourceurls": &l.URLs,
	}
	err = d.members(func(key string) (string, error) {
		name := strings.ToLower(key)
		length, known := lists[name]
		if !known {
			return "", d.skip()
		}
		return name, d.elements(func(element json.Token) error {
			if element == json.Delim('{') {
				return unreadableRole()
			}
			*length++
			return nil
		})
	})
	return l, err
}

// The numbers of the fields that are counted, in the Protobuf encoding of runtime.Unknown, of both kinds of roles, and of
// their rules.
const (
	unknownRaw   = protowire.Number(2)
	roleRules    = protowire.Number(2)
	ruleVerbs    = protowire.Number(1)
	ruleGroups   = protowire.Number(2)
	ruleResource = protowire.Number(3)
	ruleNames    = protowire.Number(4)
	ruleURLs     = protowire.Number(5)
)

// inProtobuf is inJSON for Protobuf.
func inProtobuf(body []byte) (permitted actions, err error) {
	unknown, ok := bytes.CutPrefix(body, []byte(protobufMagic))
	if !ok {
		return 0, unreadableRole()
	}
	err = eachField(unknown, func(number protowire.Number, raw []byte) error {
		if number != unknownRaw {
			return nil
		}
		return eachField(raw, func(number protowire.Number, rule []byte) error {
			if number != roleRules {
				return nil
			}
			var l tenancy.RuleLengths
			lists := map[protowire.Number]*int{
				ruleGroups: &l.Groups, ruleResource: &l.Resources, ruleVerbs: &l.Verbs, ruleNames: &l.Names, ruleURLs: &l.URLs,
			}
			if err := eachField(rule, func(number protowire.Number, _ []byte) error {
				if length := lists[number]; length != nil {
					*length++
				}
				return nil
			}); err != nil {
				return err
			}
			return permitted.add(l)
		})
	})
	return permitted, err
}

// eachField calls read with each field of a message that has a length.
func eachField(message []byte, read func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return unreadableRole()
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return unreadableRole()
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return unreadableRole()
		}
		message = message[n:]
		if err := read(number, value); err != nil {
			return err
		}
	}
	return nil
}

func unreadableRole() error {
	return errs.UnprocessableField("body", "this is no role that can be read, nor a patch of one; send JSON")
}
