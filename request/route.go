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

package request

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// look is what a body is looked into for.
type look uint8

const (
	// lookNowhere: the body is the provider's alone.
	lookNowhere look = iota
	// lookMaybe: a JSON object may name a model; if the body is anything else,
	// or encoded, it goes as it came.
	lookMaybe
	// lookStream: the path names the model; the body may ask for a stream.
	lookStream
	// lookModel: the body has to name a model.
	lookModel
)

// route is what method and path say of a request.
type route struct {
	dialect  dialect.Dialect
	look     look
	from, to int  // the model in the escaped path; to is 0 if it is not there
	stream   bool // told by the path
	streams  bool // unless the body says otherwise
	realtime bool // the query may name the model
}

// DialectOf tells the API that r speaks by its path, whatever prefix the path
// may have. Only two things besides the path count: an anthropic-version header
// for models and files, whose paths OpenAI and Anthropic share, and
// api-version, by which Azure's paths without a deployment differ. /v1/rerank is
// OpenAI's here, for that is how most providers offer it; Cohere has all of
// /v2, /v1/chat and /v1/embed.
func DialectOf(r *http.Request) dialect.Dialect {
	return match(r, escapedPath(r.URL)).dialect
}

// match returns the route of r, whose escaped path is path.
func match(r *http.Request, path string) route {
	var room [16]segment
	m := matcher{r: r, path: path, segs: split(path, room[:0])}
	rt := m.route()
	if r.Method == http.MethodOptions {
		return route{dialect: rt.dialect}
	}
	if r.Method != http.MethodPost && rt.look != lookStream {
		rt.look, rt.streams = lookNowhere, false
	}
	return rt
}

// segment is one segment of a path that is not empty.
type segment struct {
	name     string // decoded
	from, to int    // in the escaped path
}

func split(path string, segs []segment) []segment {
	for from := 0; from < len(path); {
		to := strings.IndexByte(path[from:], '/')
		if to < 0 {
			to = len(path)
		} else {
			to += from
		}
		if to > from {
			segs = append(segs, segment{decode(path[from:to]), from, to})
		}
		from = to + 1
	}
	return segs
}

func decode(escaped string) string {
	if name, err := url.PathUnescape(escaped); err == nil {
		return name
	}
	return escaped
}

type matcher struct {
	r    *http.Request
	path string
	segs []segment
}

// at returns the name of segment i, "" if there is none.
func (m *matcher) at(i int) string {
	if i < 0 || i >= len(m.segs) {
		return ""
	}
	return m.segs[i].name
}

// end returns the name of a segment counted from the end: end(1) is the last.
func (m *matcher) end(i int) string { return m.at(len(m.segs) - i) }

// index returns where name stands in the path, -1 if nowhere.
func (m *matcher) index(name string) int {
	for i, s := range m.segs {
		if s.name == name {
			return i
		}
	}
	return -1
}

// route tries what is told by most of the path first.
func (m *matcher) route() route {
	if rt, ok := m.google(); ok {
		return rt
	}
	if rt, ok := m.azureDeployment(); ok {
		return rt
	}
	if rt, ok := m.bedrock(); ok {
		return rt
	}
	rt, ok := m.inference()
	if !ok {
		rt = m.resource()
	}
	if rt.dialect == dialect.OpenAI && m.azureVersioned() {
		rt.dialect = dialect.Azure
	}
	return rt
}

// inference matches the paths by whose end a model is asked for something.
func (m *matcher) inference() (route, bool) {
	rt := route{look: lookModel}
	last, before := m.end(1), m.end(2)
	switch last {
	case "chat", "embed":
		rt.dialect = m.chatOrEmbed()
	case "rerank":
		rt.dialect = dialect.OpenAI
		if before == "v2" {
			rt.dialect = dialect.Cohere
		}
	case "embeddings", "generate":
		if before == "api" {
			rt.dialect = dialect.Ollama
		} else if last == "embeddings" {
			rt.dialect = dialect.OpenAI
		}
	case "messages":
		// OpenAI has messages too: those of a thread or of a stored completion.
		if m.end(3) != "threads" && m.end(3) != "completions" {
			rt.dialect = dialect.Anthropic
		}
	case "count_tokens":
		if before == "messages" {
			rt.dialect = dialect.Anthropic
		}
	default:
		if isOpenAIInference(before, last) {
			rt.dialect = dialect.OpenAI
		}
	}
	rt.streams = rt.dialect == dialect.Ollama && (last == "chat" || last == "generate")
	return rt, rt.dialect != dialect.None
}

func isOpenAIInference(before, last string) bool {
	switch last {
	case "completions", "responses", "moderations":
		return true
	case "generations", "edits", "variations":
		return before == "images"
	case "speech", "transcriptions", "translations":
		return before == "audio"
	}
	return false
}

// chatOrEmbed tells Ollama's /api/chat from Cohere's /v1/chat and /v2/chat.
// /api/v1/chat is neither's: it is LM Studio's own.
func (m *matcher) chatOrEmbed() dialect.Dialect {
	switch m.end(2) {
	case "api":
		return dialect.Ollama
	case "v2":
		return dialect.Cohere
	case "v1":
		if m.end(3) != "api" {
			return dialect.Cohere
		}
	}
	return dialect.None
}

// resource matches everything else: lists, files and whatever else lives at one
// account. Such bodies are not looked into even where they name a model: what
// one account made another does not know.
func (m *matcher) resource() route {
	if rt, ok := m.ollama(); ok {
		return rt
	}
	if i := m.index("messages"); i >= 0 && m.at(i+1) == "batches" {
		return route{dialect: dialect.Anthropic}
	}
	if m.end(1) == "complete" && m.end(2) == "v1" {
		return route{dialect: dialect.Anthropic, look: lookMaybe}
	}
	for i, s := range m.segs {
		if rt, ok := m.openAI(i, s.name); ok {
			return rt
		}
	}
	return route{look: lookMaybe}
}

// openAI matches the resource that segment i names.
func (m *matcher) openAI(i int, name string) (route, bool) {
	rt := route{dialect: dialect.OpenAI}
	switch name {
	case "models", "files":
		if m.anthropicVersioned(name) {
			rt.dialect = dialect.Anthropic
		}
	case "realtime":
		rt.realtime, rt.look = true, lookMaybe
	case "responses":
		if last := m.end(1); last == "input_tokens" || last == "compact" {
			rt.look = lookMaybe
		}
		rt.stream = m.r.Method == http.MethodGet && m.r.URL.Query().Get("stream") == "true"
	case "completions":
		return rt, m.at(i-1) == "chat"
	case "batches", "fine_tuning", "assistants", "threads", "vector_stores", "uploads", "conversations":
	default:
		return route{}, false
	}
	return rt, true
}

func (m *matcher) anthropicVersioned(name string) bool {
	if m.r.Header.Get("Anthropic-Version") == "" {
		return false
	}
	return name == "files" || m.r.Method == http.MethodGet || m.r.Method == http.MethodHead
}

// ollama matches Ollama's own API but for what inference has matched.
func (m *matcher) ollama() (route, bool) {
	rt := route{dialect: dialect.Ollama}
	switch m.end(1) {
	case "show":
		rt.look = lookMaybe
	case "tags", "version", "ps", "pull", "push", "create", "copy", "delete":
	default:
		return rt, m.end(2) == "blobs" && m.end(3) == "api"
	}
	return rt, m.end(2) == "api"
}
