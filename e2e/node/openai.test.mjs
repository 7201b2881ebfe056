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

// The official OpenAI client, unmodified, against a gateway whose upstreams
// fail in the ways in which providers fail.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';

import OpenAI, { toFile } from 'openai';

import { cleanUp, prepare } from './caddy.mjs';
import { clientKey, start } from './gateway.mjs';
import { chat, chunk, endStream, error, json, openStream, reset, stream } from './upstream.mjs';

before(prepare, { timeout: 600_000 });
after(cleanUp);

const messages = [{ role: 'user', content: 'hi' }];
const ask = (client, model = 'm1') => client.chat.completions.create({ model, messages });
const askStream = (client, model = 'm1', options) =>
  client.chat.completions.create({ model, messages, stream: true }, options);

const textOf = (piece) => piece.choices[0]?.delta.content || undefined;

// read returns the texts of a stream, in order.
async function read(chunks) {
  const texts = [];
  for await (const piece of chunks) if (textOf(piece)) texts.push(textOf(piece));
  return texts;
}

// rejection returns what the promise is rejected with.
const rejection = (promise) =>
  promise.then(
    () => assert.fail('no exception was raised'),
    (err) => err,
  );

// latch is a promise with its resolve function.
function latch() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { opened, open };
}

// checkRetryAfter makes sure that the client is told to wait min to max seconds.
function checkRetryAfter(err, min, max) {
  const header = err.headers.get('retry-after');
  assert.ok(Number(header) >= min && Number(header) <= max, `Retry-After is ${header}`);
}

// quickBreakers opens a breaker at its first failure, for the given time.
const quickBreakers = (time) => `early_probe off
		breaker {
			open_threshold 1
			probe_interval ${time}
			jitter 0
		}`;

// test is a behaviour with a limit on the time that it may take.
const test = (name, f) => it(name, { timeout: 30_000 }, f);

describe('the client gets its answer', () => {
  test('chat completion', async (t) => {
    const { a, b, client } = await start(t);
    const completion = await ask(client);
    assert.equal(completion.choices[0].message.content, 'answer of a');
    assert.equal(completion.choices[0].finish_reason, 'stop');
    assert.equal(completion.usage.total_tokens, 3);
    assert.deepEqual(a.bodies, [{ model: 'm1', messages }]);
    assert.equal(a.requests[0].url, '/v1/chat/completions');
    assert.equal(b.requests.length, 0);
  });

  test('streaming chat: every chunk in order', async (t) => {
    const { a, b, client } = await start(t);
    const texts = Array.from({ length: 200 }, (_, i) => `word ${i} `);
    a.script = stream(texts);
    assert.deepEqual(await read(await askStream(client)), texts);
    assert.deepEqual(a.bodies, [{ model: 'm1', messages, stream: true }]);
    assert.equal(b.requests.length, 0);
  });

  test('streaming chat: each chunk arrives before the upstream sends the next', async (t) => {
    const { a, client } = await start(t);
    const seen = [latch(), latch(), latch()];
    a.script = async (_, res) => {
      openStream(res);
      for (const [i, { opened }] of seen.entries()) {
        res.write(chunk({ content: `${i}` }));
        await opened; // until the client has it
      }
      endStream(res);
    };
    const texts = [];
    for await (const piece of await askStream(client)) {
      if (!textOf(piece)) continue;
      texts.push(textOf(piece));
      seen[texts.length - 1].open();
    }
    assert.deepEqual(texts, ['0', '1', '2']);
  });

  test('embeddings in base64, as the client asks for them', async (t) => {
    const { a, client } = await start(t);
    const vector = [0.5, -1.25, 3];
    const embedding = Buffer.from(new Float32Array(vector).buffer).toString('base64');
    a.script = json(200, { object: 'list', model: 'e1', data: [{ object: 'embedding', index: 0, embedding }], usage: {} });
    const answer = await client.embeddings.create({ model: 'e1', input: 'hi' });
    assert.deepEqual(Array.from(answer.data[0].embedding), vector);
    assert.deepEqual(a.bodies, [{ model: 'e1', input: 'hi', encoding_format: 'base64' }]);
    assert.equal(a.requests[0].url, '/v1/embeddings');
  });

  for (const [order, upload] of [
    ['before', (model, file) => ({ model, file })],
    ['after', (model, file) => ({ file, model })],
  ]) {
    test(`audio upload with the model ${order} the file: routed by model, bytes unchanged`, async (t) => {
      const { a, b, client } = await start(t, { a: 'models m1', b: 'model_map stt whisper-1' });
      b.script = json(200, { text: 'hello' });
      const audio = randomBytes(300_000);
      const file = await toFile(audio, 'speech.wav', { type: 'audio/wav' });
      const answer = await client.audio.transcriptions.create(upload('stt', file));
      assert.equal(answer.text, 'hello');
      assert.equal(a.requests.length, 0);
      const [{ url, headers, body }] = b.requests;
      assert.equal(url, '/v1/audio/transcriptions');
      const form = await new Response(body, { headers: { 'content-type': headers['content-type'] } }).formData();
      assert.deepEqual([...form.keys()].sort(), ['file', 'model']);
      assert.equal(form.get('model'), 'whisper-1');
      const got = form.get('file');
      assert.deepEqual([got.name, got.type], ['speech.wav', 'audio/wav']);
      assert.ok(audio.equals(Buffer.from(await got.arrayBuffer())), 'the file differs');
    });
  }

  test('models.list', async (t) => {
    const { a, client } = await start(t);
    const model = (id) => ({ id, object: 'model', created: 1, owned_by: 'x' });
    a.script = json(200, { object: 'list', data: [model('m1'), model('org/m2')] });
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    assert.deepEqual(ids, ['m1', 'org/m2']);
    assert.deepEqual([a.requests[0].method, a.requests[0].url], ['GET', '/v1/models']);
  });
});

describe('the client sees nothing of a failing channel', () => {
  const refuseKey = error(401, { message: 'Incorrect API key provided', type: 'invalid_request_error', code: 'invalid_api_key' });
  const faults = {
    'answers 503': async (a) => (a.script = error(503, { message: 'overloaded', type: 'server_error' })),
    'answers 429': async (a) => (a.script = error(429, { message: 'slow down', code: 'rate_limit_exceeded' }, { 'retry-after': '5' })),
    'refuses the key': async (a) => (a.script = refuseKey),
    'refuses the connection': (a) => a.stop(),
    'resets the connection': async (a) => (a.script = reset),
  };
  for (const [fault, inflict] of Object.entries(faults)) {
    test(`chat completion while the preferred channel ${fault}`, async (t) => {
      const { a, b, client } = await start(t);
      await inflict(a);
      const { data, response } = await ask(client).withResponse();
      assert.equal(data.choices[0].message.content, 'answer of b');
      assert.equal(response.headers.get('x-answered-by'), 'b');
      assert.equal(b.requests.length, 1);
      assert.equal(a.requests.length > 0, a.server.listening);
    });

    test(`streaming chat while the preferred channel ${fault}`, async (t) => {
      const { a, b, client } = await start(t);
      await inflict(a);
      const { data, response } = await askStream(client).withResponse();
      assert.deepEqual(await read(data), ['answer ', 'of ', 'b']);
      assert.equal(response.headers.get('x-answered-by'), 'b');
      assert.equal(b.requests.length, 1);
      assert.equal(a.requests.length > 0, a.server.listening);
    });
  }
});

describe('a stream that breaks off after it began raises an exception', () => {
  const ends = {
    'resets the connection': (res) => res.socket.resetAndDestroy(),
    'closes the connection': (res) => res.socket.end(),
    'ends without finish_reason and [DONE]': (res) => res.end(),
  };
  for (const [what, end] of Object.entries(ends)) {
    test(`upstream ${what} after two chunks`, async (t) => {
      const { a, b, client } = await start(t);
      const both = latch();
      a.script = async (_, res) => {
        openStream(res);
        res.write(chunk({ content: 'one' }));
        res.write(chunk({ content: 'two' }));
        await both.opened;
        end(res);
      };
      const texts = [];
      const broken = await rejection(
        (async () => {
          for await (const piece of await askStream(client)) {
            if (textOf(piece)) texts.push(textOf(piece));
            if (texts.length === 2) both.open();
          }
        })(),
      );
      assert.deepEqual(texts, ['one', 'two']);
      assert.ok(broken instanceof TypeError, `raised ${broken}`);
      assert.match(broken.message, /terminated/);
      assert.deepEqual([a.requests.length, b.requests.length], [1, 0]);
    });
  }
});

describe('the client raises the exception made for the error', () => {
  test("BadRequestError for the upstream's 400, unchanged", async (t) => {
    const { a, b, client } = await start(t);
    const fault = {
      message: "This model's maximum context length is 8 tokens.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    };
    a.script = error(400, fault, { 'x-request-id': 'req_1' });
    const err = await rejection(ask(client));
    assert.ok(err instanceof OpenAI.BadRequestError, `raised ${err}`);
    assert.equal(err.message, `400 ${fault.message}`);
    assert.deepEqual(err.error, fault);
    assert.deepEqual([err.code, err.param, err.type], [fault.code, fault.param, fault.type]);
    assert.equal(err.requestID, 'req_1');
    assert.deepEqual([a.requests.length, b.requests.length], [1, 0]);
  });

  test('NotFoundError for a model that nobody serves', async (t) => {
    const { a, b, client } = await start(t, { a: 'models m1', b: 'models m1' });
    const err = await rejection(ask(client, 'nobodys-model'));
    assert.ok(err instanceof OpenAI.NotFoundError, `raised ${err}`);
    assert.deepEqual([err.code, err.type, err.param], ['model_not_found', 'invalid_request_error', null]);
    assert.match(err.message, /^404 .*"nobodys-model"/);
    assert.deepEqual([a.requests.length, b.requests.length], [0, 0]);
  });

  test("RateLimitError while every channel is limited: the upstream's, then the gateway's", async (t) => {
    const { a, b, client } = await start(t);
    const limit = (name) =>
      error(429, { message: `limit of ${name}`, type: 'requests', code: 'rate_limit_exceeded' }, { 'retry-after': '20' });
    a.script = limit('a');
    b.script = limit('b');

    const first = await rejection(ask(client));
    assert.ok(first instanceof OpenAI.RateLimitError, `raised ${first}`);
    assert.deepEqual([first.code, first.message], ['rate_limit_exceeded', '429 limit of b']);
    assert.equal(first.headers.get('retry-after'), '20');

    const second = await rejection(ask(client));
    assert.ok(second instanceof OpenAI.RateLimitError, `raised ${second}`);
    assert.deepEqual([second.code, second.type], ['rate_limited', 'rate_limit_error']);
    checkRetryAfter(second, 1, 20);
    assert.deepEqual([a.requests.length, b.requests.length], [1, 1]);
  });

  test('InternalServerError with status 503 while every breaker is open', async (t) => {
    const { a, b, client } = await start(t, { options: quickBreakers('40s') });
    a.script = error(500, { message: 'boom of a' });
    b.script = error(500, { message: 'boom of b' });
    const opening = await rejection(ask(client));
    assert.deepEqual([opening.status, opening.message], [500, '500 boom of b']);

    const err = await rejection(ask(client));
    assert.ok(err instanceof OpenAI.InternalServerError, `raised ${err}`);
    assert.deepEqual([err.status, err.code, err.type], [503, 'no_channel_available', 'server_error']);
    checkRetryAfter(err, 1, 40);
    assert.equal(err.headers.get('x-should-retry'), null);
    assert.deepEqual([a.requests.length, b.requests.length], [1, 1]);
  });

  test("InternalServerError with status 502, no AuthenticationError, for a refused key of the gateway's", async (t) => {
    const { a, b, client } = await start(t);
    const refusal = (name) => error(401, { message: `Incorrect API key: sk-of-${name}`, code: 'invalid_api_key' });
    a.script = refusal('a');
    b.script = refusal('b');
    for (const round of ['refused', 'paused']) {
      const err = await rejection(ask(client));
      assert.ok(err instanceof OpenAI.InternalServerError, `${round}: raised ${err}`);
      assert.ok(!(err instanceof OpenAI.AuthenticationError), round);
      assert.deepEqual([err.status, err.code], [502, 'credentials_rejected'], round);
      assert.doesNotMatch(err.message, /sk-of-/, round);
    }
  });
});

describe('the retries that the client makes by default', () => {
  // counting returns a client with its default retries and how often it sent.
  function counting(rig) {
    const sent = { count: 0 };
    const counted = (...request) => {
      sent.count++;
      return fetch(...request);
    };
    return [rig.connect({ maxRetries: undefined, fetch: counted }), sent];
  }

  test('bridge an outage of every channel', async (t) => {
    const rig = await start(t);
    rig.a.script = error(500, { message: 'boom' });
    rig.b.script = (request, res) => {
      error(500, { message: 'boom' })(request, res);
      rig.a.script = chat('recovered');
    };
    const [client, sent] = counting(rig);
    assert.equal((await ask(client)).choices[0].message.content, 'recovered');
    assert.equal(sent.count, 2);
  });

  test('stop at x-should-retry: false while every channel is away for minutes', async (t) => {
    const rig = await start(t, { options: quickBreakers('10m') });
    rig.a.script = rig.b.script = error(500, { message: 'boom' });
    await rejection(ask(rig.client));

    const [client, sent] = counting(rig);
    const err = await rejection(ask(client));
    assert.deepEqual([err.status, err.code], [503, 'no_channel_available']);
    assert.equal(err.headers.get('x-should-retry'), 'false');
    assert.equal(sent.count, 1);
    assert.deepEqual([rig.a.requests.length, rig.b.requests.length], [1, 1]);
  });

  test('stop at x-should-retry: false for a model that nobody serves', async (t) => {
    const rig = await start(t, { a: 'models m1', b: 'models m1' });
    const [client, sent] = counting(rig);
    const err = await rejection(ask(client, 'nobodys-model'));
    assert.ok(err instanceof OpenAI.NotFoundError, `raised ${err}`);
    assert.equal(err.headers.get('x-should-retry'), 'false');
    assert.equal(sent.count, 1);
  });
});

describe('a client that leaves', () => {
  test('in a stream: the connection to the upstream is closed', async (t) => {
    const { a, b, client } = await start(t);
    const closed = latch();
    a.script = async (_, res) => {
      openStream(res);
      res.write(chunk({ content: 'one' }));
      await once(res, 'close');
      closed.open(res.writableEnded);
    };
    const leave = new AbortController();
    for await (const piece of await askStream(client, 'm1', { signal: leave.signal })) {
      if (textOf(piece)) leave.abort();
    }
    assert.equal(await closed.opened, false);
    assert.deepEqual([a.requests.length, b.requests.length], [1, 0]);
  });

  test('before the answer: the connection to the upstream is closed, nobody else is asked', async (t) => {
    const { a, b, client } = await start(t);
    const [asked, closed] = [latch(), latch()];
    a.script = async (_, res) => {
      asked.open();
      await once(res, 'close');
      closed.open(res.writableEnded);
    };
    const leave = new AbortController();
    const raised = rejection(client.chat.completions.create({ model: 'm1', messages }, { signal: leave.signal }));
    await asked.opened;
    leave.abort();
    assert.ok((await raised) instanceof OpenAI.APIUserAbortError);
    assert.equal(await closed.opened, false);
    assert.deepEqual([a.requests.length, b.requests.length], [1, 0]);
  });
});

test("the client's key stays here in whatever header it comes", async (t) => {
  const { a, b, connect } = await start(t);
  const headers = { 'x-api-key': clientKey, 'api-key': clientKey, 'x-goog-api-key': clientKey, cookie: `k=${clientKey}` };
  const client = connect({ defaultHeaders: headers });
  a.script = error(500, { message: 'boom' });
  assert.equal((await ask(client)).choices[0].message.content, 'answer of b');
  for (const upstream of [a, b]) {
    assert.equal(upstream.requests.length, 1);
    const [{ headers }] = upstream.requests;
    assert.equal(headers.authorization, `Bearer sk-of-${upstream.name}`);
    assert.doesNotMatch(JSON.stringify(headers), new RegExp(clientKey));
  }
});
