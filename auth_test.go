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
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// A key in the query goes upstream there and nowhere else: not over what the
// client sends under that name, and into no log.
func TestAuthQuerySendsTheKeyAsAParameter(t *testing.T) {
	const secret = "sk-a+b/c=d"
	t.Setenv("KEY_OF_A", secret)
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(
		channelBlock("a", us[0], "auth query api_key", "key {env.KEY_OF_A}")+channelBlock("b", us[1], "priority 1", "key sk-of-b")))
	for _, answer := range []http.HandlerFunc{testrig.OK, testrig.Fail(500, ""), testrig.Reset, testrig.Raw("garbage\r\n\r\n")} {
		us[0].Answer(answer)
		if got := g.Do(g.Request("/v1/chat/completions?api_key=of-the-client&x=%20y", testrig.Chat("m1"))); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	if got := us[0].Received()[0]; got.Target != "/v1/chat/completions?api_key=sk-a%2Bb%2Fc%3Dd&x=%20y" || got.Header.Get("Authorization") != "" {
		t.Errorf("a got %s %v", got.Target, got.Header)
	}
	for _, got := range us[1].Received() {
		if got.Target != "/v1/chat/completions?api_key=of-the-client&x=%20y" {
			t.Errorf("b got %s", got.Target)
		}
	}
	for _, form := range []string{secret, "sk-a%2Bb%2Fc%3Dd"} {
		if strings.Contains(g.Log(), form) {
			t.Errorf("the log has %s", form)
		}
	}
}

func TestAuthPassthroughSendsTheClientsOwnCredential(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(
		channelBlock("a", us[0], "auth passthrough")+channelBlock("b", us[1], "priority 1", "key sk-of-b")))
	r := g.Request("/v1/chat/completions?key=k1&x=1", testrig.Chat("m1"))
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie"} {
		r.Header.Set(name, "of-the-client")
	}
	us[0].Answer(testrig.Fail(500, ""))
	if got := g.Do(r); got.Status != 200 {
		t.Fatal(got.Status)
	}
	got := us[0].Last()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if got.Header.Get(name) != "of-the-client" {
			t.Errorf("a got %s: %q", name, got.Header.Get(name))
		}
	}
	if got.Header.Get("Cookie") != "" || got.Target != "/v1/chat/completions?x=1&key=k1" {
		t.Errorf("a got %s %v", got.Target, got.Header)
	}
	if all := fmt.Sprint(us[1].Last()); strings.Contains(all, "of-the-client") || strings.Contains(all, "k1") {
		t.Errorf("b got %s", all)
	}
}

// What a provider says about the client's own credential goes to the client, and
// counts for nothing.
func TestAuthPassthroughFailuresNeverCount(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("auto_disable {\nstatus 401 1 scope channel\nstatus 429 1 scope channel\n}\nsecond_opinion 1\n"+
		channelBlock("a", us[0], "auth passthrough")+channelBlock("b", us[1], "priority 1", "key sk-of-b")))
	for _, c := range []struct{ answer, client int }{{401, 401}, {403, 403}, {402, 402}, {429, 200}} {
		us[0].Answer(testrig.Fail(c.answer, ""))
		asked := us[0].Count()
		for range 4 {
			if got := g.Chat("m1"); got.Status != c.client {
				t.Errorf("%d: client got %d %s", c.answer, got.Status, got.Body)
			}
		}
		if n := us[0].Count() - asked; n != 4 {
			t.Errorf("%d: a was asked %d times", c.answer, n)
		}
	}
	if ch := g.Channel("a"); ch.State != "enabled" || ch.Health != "green" {
		t.Errorf("%+v", ch)
	}
}

func TestAuthPassthroughLetsTheKeySubprotocolThrough(t *testing.T) {
	us := upstreams(t, 1)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "auth passthrough")))
	us[0].Answer(echoSocket)
	conn, _, res := handshake(t, g, "/v1/realtime?model=m1")
	defer conn.Close()
	if res.StatusCode != 101 {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if got := us[0].Last().Header.Get("Sec-Websocket-Protocol"); got != "realtime, openai-insecure-api-key.client-secret" {
		t.Errorf("a got subprotocols %q", got)
	}
}
