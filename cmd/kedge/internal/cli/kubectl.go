package cli

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/client"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

func (a *app) kubeconfigCommand() *cobra.Command {
	var org, workspace, file string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for the chosen workspace",
		Long: `Print a kubeconfig for the chosen workspace. It holds no token: kubectl asks
kedge for one, so keep kedge on your PATH and stay logged in.`,
		Example: `  kedge kubeconfig > kubeconfig
  kedge kubeconfig --file kubeconfig`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			place, err := s.workspace(org, workspace)
			if err != nil {
				return err
			}
			place.Method, place.Path = http.MethodGet, place.Path+"/kubeconfig"
			_, raw, err := s.Do(cmd.Context(), place)
			if err != nil {
				return err
			}
			if file != "" {
				return config.WriteFile(file, raw)
			}
			_, err = a.Out.Write(raw)
			return err
		},
	}
	cmd.Flags().StringVar(&org, "org", "", "UUID of the organization (default: the chosen one)")
	cmd.Flags().StringVar(&workspace, "workspace", "", "UUID of the workspace (default: the chosen one)")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write to instead, readable by you alone")
	return cmd
}

func (a *app) credentialCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "credential",
		Short: "Print a credential for kubectl (run by kubectl itself)",
		Long: `Print an ExecCredential for the workspace that kubectl names in
$KUBERNETES_EXEC_INFO. Kubeconfigs of a hub run this command; people need not.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := a.Getenv("KUBERNETES_EXEC_INFO")
			if info == "" {
				return errors.New("KUBERNETES_EXEC_INFO is not set: this command is for kubectl, which sets it")
			}
			var question clientauthenticationv1.ExecCredential
			if err := json.Unmarshal([]byte(info), &question); err != nil || question.Kind != "ExecCredential" {
				return errors.New("KUBERNETES_EXEC_INFO is not an ExecCredential")
			}
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			_, raw, err := s.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: "/api/credentials", Body: question})
			if err != nil {
				return err
			}
			_, err = a.Out.Write(raw)
			return err
		},
	}
}
