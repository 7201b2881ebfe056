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
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// modelsPath finds the list of models, or one of them, below any prefix.
var modelsPath = regexp.MustCompile(`^(?:.*?)/models(?:/(.+))?$`)

// askedModels reports whether q asks for the models there are: for all of them,
// or for one by its id.
func askedModels(q *request.Request) (id string, ok bool) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return "", false
	}
	switch q.Dialect {
	case dialect.OpenAI, dialect.Anthropic, dialect.Gemini:
	default:
		return "", false
	}
	found := modelsPath.FindStringSubmatch(q.Path(""))
	if found == nil {
		return "", false
	}
	id, err := url.PathUnescape(found[1])
	return id, err == nil
}

// serveModels answers questions for the models there are from the names that are
// written in the config. It reports false where the question has to be proxied,
// since only an upstream can tell.
func (x *exchange) serveModels(w http.ResponseWriter) (bool, error) {
	id, ok := askedModels(x.req)
	if !ok {
		return false, nil
	}
	models := x.gw.listModels(x.dialect)
	if len(models) == 0 {
		return false, nil
	}
	if id == "" {
		return true, x.answer(w, modelList(x.dialect, models))
	}
	for _, m := range models {
		if m.id == id {
			return true, x.answer(w, m.object(x.dialect))
		}
	}
	if x.gw.anybodyServes(x.dialect, id) {
		return false, nil // by a glob: only the upstream knows
	}
	return true, x.refuse(w, x.unknownModel(id))
}

// answer answers with a document of our own.
func (x *exchange) answer(w http.ResponseWriter, document any) error {
	x.outcome = outcomeServed
	w.Header().Set("Content-Type", "application/json")
	if x.orig.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return json.NewEncoder(w).Encode(document)
}

// listedModel is a model whose name is written in the config.
type listedModel struct {
	id      string
	channel string // the first that has it
}

// listModels returns the models that can be asked for by a name that is written,
// in config order, each once.
func (gw *gateway) listModels(d dialect.Dialect) []listedModel {
	var list []listedModel
	for _, ch := range gw.channels {
		if !ch.speaks(d) {
			continue
		}
		for _, id := range ch.models.listed {
			if !slices.ContainsFunc(list, func(m listedModel) bool { return m.id == id }) {
				list = append(list, listedModel{id, ch.name})
			}
		}
	}
	return list
}

func (gw *gateway) anybodyServes(d dialect.Dialect, model string) bool {
	return slices.ContainsFunc(gw.channels, func(ch *channel) bool {
		_, ok := ch.models.upstream(model)
		return ok && ch.speaks(d)
	})
}

type object = map[string]any

// modelList returns the list in the shape of the dialect.
func modelList(d dialect.Dialect, models []listedModel) object {
	objects := make([]object, len(models))
	for i, m := range models {
		objects[i] = m.object(d)
	}
	switch d {
	case dialect.Anthropic:
		return object{"data": objects, "has_more": false, "first_id": models[0].id, "last_id": models[len(models)-1].id}
	case dialect.Gemini:
		return object{"models": objects}
	}
	return object{"object": "list", "data": objects}
}

// object returns the model in the shape of the dialect. When it was made nobody
// knows; SDKs want a time all the same.
func (m listedModel) object(d dialect.Dialect) object {
	switch d {
	case dialect.Anthropic:
		return object{"type": "model", "id": m.id, "display_name": m.id, "created_at": time.Unix(0, 0).UTC().Format(time.RFC3339)}
	case dialect.Gemini:
		return object{"name": "models/" + m.id, "displayName": m.id,
			"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent", "countTokens", "embedContent"}}
	}
	return object{"id": m.id, "object": "model", "created": 0, "owned_by": m.channel}
}
