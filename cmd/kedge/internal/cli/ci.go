package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/oauth"
)

// The variables that have the ID token of a job, or say where it is.
const (
	githubRequestURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubRequestToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	gitlabToken        = "KEDGE_ID_TOKEN" //nolint:gosec // the name of a variable
)

// maxSubjectToken is the maximum length of an ID token of a job, in bytes.
const maxSubjectToken = 16 << 10

// logInAsJob gets a token of a bot for the ID token of the job that runs this command.
func (a *app) logInAsJob(ctx context.Context, o loginOptions, login *config.Profile) error {
	if !isUUID(o.bot) {
		return fmt.Errorf("--bot: give the UUID of the bot, as shown by: kedge bots list; %w", errUsage)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("the job was not logged in within %s", o.timeout))
	defer cancel()
	subject, err := a.subjectToken(ctx, o, login.Server)
	if err != nil {
		return err
	}
	tokens, err := oauth.Exchange(ctx, a.oauthConfig(login), strings.ToLower(o.bot), subject)
	if err != nil {
		return checkServer(err)
	}
	login.Token, login.ExpiresAt = tokens.AccessToken, tokens.ExpiresAt
	return nil
}

// subjectToken is the ID token of the job: from GitHub's runner, from the variable that GitLab sets, or
// from a file.
func (a *app) subjectToken(ctx context.Context, o loginOptions, audience string) (string, error) {
	switch {
	case o.subjectTokenFile != "":
		raw, err := os.ReadFile(o.subjectTokenFile)
		if err != nil {
			return "", fmt.Errorf("--subject-token-file: %w", err)
		}
		if token := strings.TrimSpace(string(raw)); token != "" && len(token) <= maxSubjectToken {
			return token, nil
		}
		return "", errors.New("--subject-token-file: the file has no ID token")
	case a.Getenv(githubRequestURL) != "" && a.Getenv(githubRequestToken) != "":
		return oauth.GitHubToken(ctx, a.Outside, a.Getenv(githubRequestURL), a.Getenv(githubRequestToken), audience)
	case a.Getenv(gitlabToken) != "":
		return a.Getenv(gitlabToken), nil
	}
	return "", errors.New("this is no job with an ID token: GitHub Actions needs permissions: {id-token: write}, GitLab CI needs id_tokens: {" + gitlabToken +
		": {aud: " + audience + "}}; elsewhere give --subject-token-file")
}
