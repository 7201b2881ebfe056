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

// The faults under which every call is made, and what its user has to see.
//
// fits tells whether a fault makes sense for a call. script is what an upstream
// does, if not what it should. options and channels are lines of the gateway and
// of its channels. play makes the call and checks the outcome.

import assert from 'node:assert/strict';

import { answer, frame, openStream } from './wire.mjs';

const always = () => true;
const streams = (call) => Boolean(call.stream);
const withModel = (call) => !call.modelless;

// onlyA is a script of the preferred channel's upstream.
const onlyA = (script) => (context) => (context.upstream.name === 'a' ? script(context) : undefined);

// rejection returns what the promise is rejected with.
const rejection = (promise) =>
  promise.then(
    (value) => assert.fail(`no exception was raised, but got ${value}`),
    (err) => err,
  );

// asked makes sure how often the upstreams were asked.
const asked = ({ a, b }, ...times) => assert.deepEqual([a.requests.length, b.requests.length], times, 'requests of a and b');

// refuse answers with a fault of the provider.
const refuse = (fault) => ({ wire }) => {
  const { status, headers, body } = wire.faults[fault];
  return (_, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers });
    res.end(JSON.stringify(body));
  };
};

// errorEvents is an event stream that begins with an error.
const errorEvents = ({ wire, call }) => (_, res) => {
  openStream(res);
  for (const event of wire.streams[call.stream].error ?? wire.errorEvents) res.write(frame(wire, event));
  res.end();
};

// breakEarly breaks the answer off before any of its content.
const breakEarly = ({ wire, call }) => (_, res) => {
  if (call.stream) {
    openStream(res);
    for (const event of wire.streams[call.stream].head.slice(0, -1).slice(0, 1)) res.write(frame(wire, event));
  } else {
    const body = JSON.stringify(wire.answers[call.answer]);
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    res.write(body.slice(0, body.length / 2));
  }
  setImmediate(() => res.socket.resetAndDestroy());
};

// breakLate ends a stream once the client has the first content of it.
const breakLate = (end) => ({ wire, call, rig }) => async (_, res) => {
  openStream(res);
  for (const event of wire.streams[call.stream].head) res.write(frame(wire, event));
  await rig.firstContent;
  end(res);
};

// servedBy makes sure that the client gets the upstream's answer.
const servedBy = (name, ...times) => async (rig) => {
  assert.equal(await rig.run(), name, 'answer');
  asked(rig, ...times);
};

// hidden is a fault that the client sees nothing of.
const hidden = (script, fits = always) => ({ fits, script: onlyA(script), play: servedBy('b', 1, 1) });

// breaksOff makes sure that the client raises an exception.
const breaksOff = async (rig) => {
  rig.client.broken(await rejection(rig.run()));
  asked(rig, 1, 0);
};

// raises makes sure that the client raises its exception for the status.
const raises = (status, message, more, ...times) => async (rig) => {
  const err = await rejection(rig.run(more?.(rig)));
  rig.client.raises[status](err);
  assert.match(rig.client.text(err), message);
  asked(rig, ...times);
  return err;
};

// quickBreakers opens a breaker at its first failure, for the given time.
const quickBreakers = (time) => `early_probe off
			breaker {
				open_threshold 1
				probe_interval ${time}
				jitter 0
			}`;

// allOut raises the gateway's 503, after an answer that opened the breakers.
async function allOut(rig) {
  rig.client.raises[500](await rejection(rig.run()));
  const err = await raises(503, /channel/, null, 1, 1)(rig);
  if (!rig.client.header) return;
  const wait = Number(rig.client.header(err, 'retry-after'));
  assert.ok(wait >= 1 && wait <= 40, `Retry-After is ${wait}`);
}

// counted counts what all clients of this process send meanwhile.
async function counted(f) {
  const real = globalThis.fetch;
  let sent = 0;
  globalThis.fetch = (...args) => (sent++, real(...args));
  try {
    await f();
  } finally {
    globalThis.fetch = real;
  }
  return sent;
}

const ask = ({ call, retrying }) => call.run(retrying(), { model: 'm1', text: 'hello', seen() {} });

// bridged makes sure that the client's retry gets the answer after an outage.
async function bridged(rig) {
  const sent = await counted(async () => assert.equal(await ask(rig), 'a'));
  assert.equal(sent, 2);
  asked(rig, 2, 1);
}

// outage is an upstream a that is back once b was asked.
const outage = (context) => {
  const { call, upstream, rig } = context;
  const fail = refuse('500')(context);
  return (request, res) => {
    if (upstream.name === 'b') rig.a.script = answer(rig.wires.a, call);
    fail(request, res);
  };
};

// stopped makes sure that the client does not retry what says x-should-retry:
// false.
async function stopped(rig) {
  rig.client.raises[500](await rejection(rig.run()));
  const sent = await counted(async () => {
    const err = await rejection(ask(rig));
    rig.client.raises[503](err);
    assert.equal(rig.client.header(err, 'x-should-retry'), 'false');
  });
  assert.equal(sent, 1);
  asked(rig, 1, 1);
}

const retried = (call, client) => call.name === 'chat' && client.retries;

export const faults = {
  none: { fits: always, play: servedBy('a', 1, 0) },
  'connection refused': { fits: always, refuses: true, play: servedBy('b', 0, 1) },
  'status 500': hidden(refuse('500')),
  'status 429': hidden(refuse('429')),
  'status 401': hidden(refuse('401')),
  overloaded: hidden(refuse('overloaded')),
  'error in a 200': {
    fits: withModel,
    script: onlyA((context) => (context.call.stream ? errorEvents : refuse('error in a 200'))(context)),
    play: servedBy('b', 1, 1),
  },
  'cut before content': hidden(breakEarly, withModel),
  'cut after content': { fits: streams, script: onlyA(breakLate((res) => res.socket.resetAndDestroy())), play: breaksOff },
  'ends after content': { fits: streams, script: onlyA(breakLate((res) => res.end())), play: breaksOff },
  "provider's 400": { fits: withModel, script: onlyA(refuse('400')), play: raises(400, /fault of a/, null, 1, 0) },
  "gateway's 400": {
    fits: (call, client) => withModel(call) && 'noModel' in client,
    play: raises(400, /model/, ({ client }) => ({ model: client.noModel }), 0, 0),
  },
  "gateway's 404": {
    fits: withModel,
    channels: 'models m1',
    play: raises(404, /nobodys-model/, () => ({ model: 'nobodys-model' }), 0, 0),
  },
  "gateway's 413": { fits: withModel, options: 'max_body 2KiB', text: 'x'.repeat(3000), play: raises(413, /2048|2 ?KiB/i, null, 0, 0) },
  "gateway's 503": { fits: always, options: quickBreakers('40s'), script: refuse('500'), play: allOut },
  'its retries bridge an outage': { fits: retried, script: outage, play: bridged },
  'x-should-retry stops its retries': { fits: retried, options: quickBreakers('10m'), script: refuse('500'), play: stopped },
};
