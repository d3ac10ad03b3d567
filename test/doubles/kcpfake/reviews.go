package kcpfake

import (
	"encoding/json"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Review has SubjectAccessReviews answered by f. Without it the server does not serve
// them.
func (s *Server) Review(f func(cluster string, asked authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.review = f
}

// isReview reports whether the request is a SubjectAccessReview that the server answers.
func (s *Server) isReview(in Request) bool {
	return s.review != nil && in.Verb == verbCreate && in.Group == authorizationv1.GroupName && in.Resource == "subjectaccessreviews"
}

func (s *Server) answerReview(in Request) (int, any, error) {
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(in.Body, &review); err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
	review.Status = s.review(in.Cluster, review.Spec)
	return http.StatusCreated, &review, nil
}
