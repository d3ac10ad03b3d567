package bots

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"Bot": view{}, "BotList": paging.List[view]{}, "BotToken": tokenView{}, "BotTokenList": paging.List[tokenView]{}, "IssuedBotToken": issuedView{},
		"CreateBotRequest": createRequest{}, "UpdateBotRequest": patchRequest{}, "IssueBotTokenRequest": issueRequest{},
	})
}
