// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package llmgateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// explanation is what GET /llm_gateway/explain answers: who would serve a
// request, and why the others would not.
type explanation struct {
	Gateway    string               `json:"gateway"`
	Model      string               `json:"model"`
	Path       string               `json:"path"`
	Dialect    string               `json:"dialect"`
	Candidates []explainedCandidate `json:"candidates"`
}

type explainedCandidate struct {
	Channel         string  `json:"channel"`
	UpstreamModel   string  `json:"upstream_model"`
	Group           int     `json:"group"`
	EffectiveWeight float64 `json:"effective_weight"`
	Usable          bool    `json:"usable"`
	Probe           bool    `json:"probe,omitempty"`
	Reason          string  `json:"reason"`
}

// Why a channel is no candidate at all.
const (
	otherDialect = "dialect"
	otherModel   = "model"
)

const defaultExplainPath = "/v1/chat/completions"

func serveExplain(w http.ResponseWriter, r *http.Request) error {
	if err := allow(w, r, http.MethodGet, http.MethodHead); err != nil {
		return err
	}
	query := r.URL.Query()
	name, path := query.Get("gateway"), query.Get("path")
	if name == "" {
		name = defaultName
	}
	if path == "" {
		path = defaultExplainPath
	}
	gw, err := liveGateway(name)
	if err != nil {
		return err
	}
	q, err := imagined(path, query.Get("model"))
	if err != nil {
		return err
	}
	return writeJSON(w, gw.explain(q, path, time.Now()))
}

// imagined returns what a request for the model at the path would ask for.
func imagined(path, model string) (*request.Request, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, adminError(http.StatusBadRequest, "path: %q does not begin with a slash", path)
	}
	body := []byte("{}")
	if model != "" {
		body, _ = json.Marshal(map[string]string{"model": model}) // strings never fail
	}
	r, err := http.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, adminError(http.StatusBadRequest, "path: %q is no path", path)
	}
	r.Header.Set("Content-Type", "application/json")
	q, err := request.Read(r, request.Limits{})
	if bad, ok := errors.AsType[*request.Error](err); ok {
		return nil, adminError(http.StatusBadRequest, "%s", bad.Message)
	}
	return q, err
}

// explain looks at the candidates as the next request would. It changes nothing.
func (gw *gateway) explain(q *request.Request, path string, now time.Time) explanation {
	x := &exchange{gw: gw}
	x.admit(q)
	e := explanation{Gateway: gw.name, Model: q.Model, Path: path, Dialect: q.Dialect.String(), Candidates: []explainedCandidate{}}
	anybody := false
	for i := range x.cands {
		c := x.cands[i].explain(now)
		anybody = anybody || c.Usable
		e.Candidates = append(e.Candidates, c)
	}
	if !anybody {
		if i := x.earliest(now); i >= 0 {
			e.Candidates[i].Usable, e.Candidates[i].Probe, e.Candidates[i].Reason = true, true, ""
		}
	}
	for _, ch := range gw.channels {
		if reason := ch.unfit(q); reason != "" {
			e.Candidates = append(e.Candidates, explainedCandidate{Channel: ch.name, Group: -1, Reason: reason})
		}
	}
	return e
}

func (c *candidate) explain(now time.Time) explainedCandidate {
	weight, out := c.look(now)
	return explainedCandidate{
		Channel:         c.name,
		UpstreamModel:   c.model,
		Group:           c.group,
		EffectiveWeight: weight,
		Usable:          out.reason == usable,
		Probe:           out.reason == usable && c.state.breakers.Look(c.model, now).Probe,
		Reason:          string(out.reason),
	}
}

// unfit tells why ch is no candidate for q; empty if it is one.
func (ch *channel) unfit(q *request.Request) string {
	if !ch.speaks(q.Dialect) {
		return otherDialect
	}
	if _, ok := ch.models.upstream(q.Model); !ok && q.Model != "" {
		return otherModel
	}
	return ""
}
