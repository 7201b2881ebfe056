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

package llmgateway_test

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func init() {
	caddy.RegisterModule(new(spanner))
	httpcaddyfile.RegisterHandlerDirective("test_span", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		return new(spanner), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("test_span", httpcaddyfile.Before, "encode")
}

// spanner puts a span on the request's context, as Caddy's tracing does.
type spanner struct{}

var spans = tracetest.NewInMemoryExporter()

func (*spanner) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_gateway_test_span", New: func() caddy.Module { return new(spanner) }}
}

func (*spanner) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	ctx, span := provider.Tracer("test").Start(r.Context(), "request")
	defer span.End()
	return next.ServeHTTP(w, r.WithContext(ctx))
}

func TestAttemptsAreEventsOfTheSpan(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, "test_span\n"+gatewayBlock(channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	us[0].Answer(testrig.Fail(503, ""))
	spans.Reset()
	g.Chat("m1")
	var got []map[string]string
	testrig.Eventually(t, "a span", func() bool { return len(spans.GetSpans()) == 1 })
	for _, e := range spans.GetSpans()[0].Events {
		attributes := map[string]string{"event": e.Name}
		for _, a := range e.Attributes {
			attributes[string(a.Key)] = a.Value.String()
		}
		got = append(got, attributes)
	}
	if len(got) != 2 {
		t.Fatalf("%d events: %v", len(got), got)
	}
	for i, want := range []map[string]string{
		{"event": "llm_gateway.attempt", "llm_gateway.channel": "a", "llm_gateway.model": "m1", "llm_gateway.verdict": "failure", "http.response.status_code": "503"},
		{"event": "llm_gateway.attempt", "llm_gateway.channel": "b", "llm_gateway.model": "m1", "llm_gateway.verdict": "success", "http.response.status_code": "200"},
	} {
		for key, value := range want {
			if got[i][key] != value {
				t.Errorf("event %d: %s is %q, want %q", i, key, got[i][key], value)
			}
		}
	}
}
