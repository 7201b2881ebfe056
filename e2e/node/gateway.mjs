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

// A Caddy of its own for each test, with a gateway between the official client
// and two scripted upstreams.

import assert from 'node:assert/strict';

import OpenAI from 'openai';

import { serve } from './caddy.mjs';
import { Upstream } from './upstream.mjs';

// clientKey is what the client authenticates with. No upstream may see it.
export const clientKey = 'client-key';

// start runs a gateway whose channel a is preferred and whose channel b stands
// behind it, until the test ends. options are lines of the gateway; a and b are
// lines of the channels. It returns the upstreams a and b, a client of the
// gateway that does not retry, and connect, which makes clients with options of
// their own.
export async function start(t, { options = '', a = '', b = '' } = {}) {
  const rig = { a: new Upstream('a'), b: new Upstream('b') };
  const undo = [async () => checkCredentials(rig)];
  t.after(() => finish(undo.reverse()));
  for (const upstream of [rig.a, rig.b]) {
    await upstream.start();
    undo.push(() => upstream.stop());
  }
  const caddy = await serve((port) => site({ port, rig, options, a, b }));
  undo.push(caddy.stop);
  const baseURL = `${caddy.url}/v1`;
  rig.connect = (more) => new OpenAI({ baseURL, apiKey: clientKey, maxRetries: 0, ...more });
  rig.client = rig.connect();
  return rig;
}

// finish takes every step, whichever fails.
async function finish(steps) {
  const failed = [];
  for (const step of steps) await step().catch((err) => failed.push(err));
  if (failed.length) throw failed[0];
}

function site({ port, rig, options, a, b }) {
  return `http://:${port} {
	llm_gateway /v1/* {
		${options}
		channel a {
			base_url http://127.0.0.1:${rig.a.port}/v1
			key ${rig.a.key}
			${a}
		}
		channel b {
			base_url http://127.0.0.1:${rig.b.port}/v1
			key ${rig.b.key}
			priority 1
			${b}
		}
	}
}
`;
}

// checkCredentials makes sure that each upstream got its channel's key and
// nothing of the client's.
function checkCredentials({ a, b }) {
  for (const upstream of [a, b]) {
    for (const { url, headers, body } of upstream.requests) {
      assert.equal(headers.authorization, `Bearer ${upstream.key}`, `key sent to ${upstream.name}`);
      const seen = `${url} ${JSON.stringify(headers)} ${body.toString('latin1')}`;
      assert.ok(!seen.includes(clientKey), `the client's key was sent to ${upstream.name}`);
    }
  }
}
