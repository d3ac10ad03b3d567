package tenancy

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// uuidPattern is what IsUUID accepts, for policies of kcp.
const uuidPattern = `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`

var clusterIDPattern = regexp.MustCompile(`^[a-z0-9]{1,32}$`)

// IsUUID reports whether s is a UUID in canonical lower case (O-1). Every request asks it about the UUIDs in its path.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// IsClusterID reports whether s has the form of a logical cluster's ID.
func IsClusterID(s string) bool { return clusterIDPattern.MatchString(s) }

// PersonalOrgOf is the UUID of the personal Organization of a User. It is chosen in the write that
// creates the User, or follows from the UID, so that a retry cannot create a second one.
func PersonalOrgOf(u *v1alpha1.User) string {
	if chosen := u.Annotations[v1alpha1.PersonalOrgAnnotation]; IsUUID(chosen) {
		return chosen
	}
	return PersonalOrgUUID(string(u.UID))
}

// DefaultWorkspaceOf is the UUID of the default Workspace of a personal Organization.
func DefaultWorkspaceOf(o *v1alpha1.Organization) string {
	if chosen := o.Annotations[v1alpha1.DefaultWorkspaceAnnotation]; IsUUID(chosen) {
		return chosen
	}
	return DefaultWorkspaceUUID(string(o.UID))
}

// PersonalOrgUUID is the UUID of the personal Organization of the User with that UID, unless another one
// was chosen.
func PersonalOrgUUID(userUID string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenancy.kedge.faros.sh/users/"+userUID)).String()
}

// DefaultWorkspaceUUID is the UUID of the default Workspace of the personal Organization with that UID,
// unless another one was chosen.
func DefaultWorkspaceUUID(orgUID string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenancy.kedge.faros.sh/orgs/"+orgUID)).String()
}

// IdentityHash is the value of IdentityLabel for an issuer and subject: 40 hexadecimal
// digits.
func IdentityHash(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return hex.EncodeToString(sum[:20])
}
