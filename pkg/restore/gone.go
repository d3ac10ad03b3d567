package restore

import (
	"context"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// goneKey is what Steps have in common that the Report lists in one line.
type goneKey struct {
	kind Kind
	org  string
}

// impossible adds to the Report a Step that cannot be carried out. Those in an Organization that the backup does not have
// share a line: nobody can have anything in it, and there can be any number of them.
func (p *pass) impossible(ctx context.Context, s Step, why impossible, r *Report) {
	key := goneKey{s.Kind, s.Org}
	i, known := p.gone[key]
	switch {
	case !why.org:
		warn(ctx, notAgain, s, why.reason)
	case known:
		r.Impossible[i].Others++
		return
	default:
		p.gone[key] = len(r.Impossible)
	}
	r.Impossible = append(r.Impossible, Impossible{Step: s, Reason: why.reason})
}

// notAgain is what the log says of what cannot be ended.
const notAgain = "what ended after the backup cannot be ended again"

// warnOfGone writes a line for each Organization that was not there in this pass.
func (p *pass) warnOfGone(ctx context.Context, r *Report) {
	endings, reasons := map[string]int{}, map[string]string{}
	for key, i := range p.gone {
		endings[key.org] += 1 + r.Impossible[i].Others
		reasons[key.org] = r.Impossible[i].Reason
	}
	for org, n := range endings {
		log.From(ctx).Warn(notAgain, zap.String("org", org), zap.Int("endings", n), zap.String("reason", reasons[org]))
	}
}

// goneKinds are the kinds and Organizations of which the Report has all Steps in one line.
func (r Report) goneKinds() map[goneKey]bool {
	gone := map[goneKey]bool{}
	for _, i := range r.Impossible {
		if i.Others > 0 {
			gone[goneKey{i.Kind, i.Org}] = true
		}
	}
	return gone
}
