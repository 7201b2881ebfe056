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

// Every call of a client against every fault of the preferred channel, on one
// gateway. What the client saw goes into the table of the run, see ../table.mjs.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import net from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';

import { clientKey, cleanUp, freePorts, prepare, serve, undoAll } from './gateway.mjs';
import { json, Upstream } from './upstream.mjs';
import { answer, cutEarly, cutLate, events, fill, read, stream } from './wire.mjs';

const caddyfile = readFileSync(new URL('../wire/Caddyfile', import.meta.url), 'utf8');

// What the calls send: their upstream has to get these bytes.
export const image = randomBytes(3000).toString('base64');
export const audio = randomBytes(100_000);

// matrix tests a client. It is described by
//
//   name          for the table
//   wire          name of the file with its wire format
//   connect(url, { headers, retry })
//                 makes a client that has these headers in addition, and that
//                 retries only if retry is set, as it does by default
//   calls         by their names in the wire format: functions of the client
//                 and { model, text, received } that return what the answer
//                 says; those for streams call received for each piece
//   status(err)   the HTTP status that an exception tells
//   code(err)     what it tells of the kind of error in the body
//   header(err, name)
//                 a header of the answer, if it tells any
//   errors        the exception class for each status, and the code for an error
//                 that the gateway made
//   retries       whether its defaults make it retry
export function matrix(client) {
  const wire = read(client.wire);
  const rig = { a: new Upstream('a'), b: new Upstream('b'), undo: [], models: 0 };
  const bench = { client, wire, rig };
  before(() => launch(bench), { timeout: 600_000 });
  after(() => undoAll(rig.undo));
  beforeEach(() => restore(rig));

  for (const call of Object.keys(client.calls)) {
    describe(`${client.name}: ${call}`, () => {
      answered(bench, call);
      failedOver(bench, call);
      if (wire.calls[call].events) broken(bench, call);
      if (wire.calls[call].method !== 'GET') refused(bench, call);
    });
  }
  describe(`${client.name}: its default retries`, () => retried(bench));

  it('every call of the wire format is made', () => {
    const missing = Object.keys(wire.calls).filter((call) => !client.calls[call]);
    assert.deepEqual(missing, []);
  });
}

async function launch({ wire, rig }) {
  rig.undo.push(cleanUp);
  await prepare();
  for (const upstream of [rig.a, rig.b]) {
    await upstream.start();
    rig.undo.push(() => upstream.stop());
  }
  const [port, refusing, admin] = await freePorts(3);
  const nobody = await occupy(rig.undo);
  const env = { PROVIDER: wire.provider, BASE: wire.base, A: rig.a.port, B: rig.b.port, NOBODY: nobody };
  Object.assign(env, { PORT: port, REFUSING_PORT: refusing, ADMIN: admin });
  rig.undo.push(await serve(caddyfile, { port, env }));
  rig.url = `http://127.0.0.1:${port}`;
  rig.refusing = `http://127.0.0.1:${refusing}`;
  rig.admin = `http://127.0.0.1:${admin}/llm_gateway/default/channels`;
}

// occupy returns a port that refuses connections, and that nobody else can get:
// it is the client's end of a connection.
async function occupy(undo) {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = net.connect(server.address().port, '127.0.0.1');
  const [[accepted]] = await Promise.all([once(server, 'connection'), once(socket, 'connect')]);
  undo.push(() => [socket, accepted].forEach((s) => s.destroy()) ?? server.close());
  return socket.localPort;
}

// act is an act of the operator.
async function act(rig, path, body = {}) {
  const headers = { 'content-type': 'application/json', origin: new URL(rig.admin).origin }; // fetch counts as a browser
  const res = await fetch(`${rig.admin}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(res.status, 200, await res.text());
}

// restore undoes what the test before has left on the channels.
async function restore(rig) {
  for (const upstream of [rig.a, rig.b]) {
    upstream.requests = [];
    upstream.script = json(599, 'no script');
    await act(rig, `${upstream.name}/enable`);
    await act(rig, `${upstream.name}/breaker/reset`);
  }
}

// outage opens the breakers of a model at both channels.
async function outage(rig, model, time) {
  for (const name of ['a', 'b']) await act(rig, `${name}/breaker/open?model=${model}`, { for: time });
}

const newModel = (rig) => `m-${++rig.models}`;

// the returns the wire format of a call, as the channel answers it.
const the = ({ wire }, call, channel, model) => fill(wire.calls[call], { channel, model });

// cell is a test whose outcome goes into the table: f returns what the client
// saw, in a word.
function cell({ client }, call, fault, f) {
  it(fault, { timeout: 30_000 }, async () => {
    let saw = 'FAILED';
    try {
      saw = await f();
    } finally {
      const line = JSON.stringify({ client: client.name, call, fault, saw });
      if (process.env.E2E_RESULTS) appendFileSync(process.env.E2E_RESULTS, `${line}\n`);
    }
  });
}

function make({ client, rig }, call, model, { url = rig.url, headers, retry, text = 'hi', received = () => {} } = {}) {
  return client.calls[call](client.connect(url, { headers, retry }), { model, text, received });
}

const rejection = (promise) =>
  promise.then(
    (value) => assert.fail(`no exception was raised, but it got ${JSON.stringify(value)}`),
    (err) => err,
  );

// checkSent makes sure that the upstream got one request for the call, with its
// own key, and with nothing of the client's key.
function checkSent({ wire }, upstream, { method = 'POST', path }, call) {
  assert.equal(upstream.requests.length, 1, `requests at ${upstream.name}`);
  const [{ method: used, url, headers, body }] = upstream.requests;
  assert.equal(used, method);
  const asked = new URL(url, 'http://upstream');
  const due = new URL(path, 'http://upstream');
  assert.equal(asked.pathname, due.pathname);
  for (const [name, value] of due.searchParams) assert.equal(asked.searchParams.get(name), value);
  assert.equal(headers[wire.key.header], wire.key.prefix + `key-of-${upstream.name}`);
  assert.ok(!`${url} ${JSON.stringify(headers)} ${body.toString('latin1')}`.includes(clientKey));
  if (call === 'image input') assert.ok(body.includes(image), 'the image differs');
  if (call === 'audio upload') assert.ok(body.includes(audio), 'the audio differs');
}

function answered(bench, call) {
  const { rig, wire } = bench;
  cell(bench, call, 'no fault', async () => {
    const model = newModel(rig);
    const due = the(bench, call, 'a', model);
    rig.a.script = answer(wire, due);
    assert.deepEqual(await make(bench, call, model), due.value);
    checkSent(bench, rig.a, due, call);
    assert.equal(rig.b.requests.length, 0);
    return 'a';
  });
}

// failedOver are the faults of which the client sees nothing.
function failedOver(bench, call) {
  const { rig, wire } = bench;
  const respond = ({ status, body, headers }) => json(status, body, headers);
  const scripts = Object.fromEntries(Object.entries(wire.faults).map(([name, fault]) => [name, () => respond(fault)]));
  if (wire.calls[call].error) scripts['error event first'] = (due) => stream(wire, due.error);
  // What names no model is passed on as it comes.
  if (wire.calls[call].method !== 'GET') scripts['cut before content'] = (due) => cutEarly(wire, due);

  for (const [fault, script] of Object.entries(scripts)) {
    cell(bench, call, fault, async () => {
      const model = newModel(rig);
      rig.a.script = script(the(bench, call, 'a', model));
      await checkFailedOver(bench, call, model, rig.url);
      assert.equal(rig.a.requests.length, 1);
      return 'b';
    });
  }
  cell(bench, call, 'refuses', async () => {
    await checkFailedOver(bench, call, newModel(rig), rig.refusing);
    return 'b';
  });
}

async function checkFailedOver(bench, call, model, url) {
  const { rig, wire } = bench;
  const due = the(bench, call, 'b', model);
  rig.b.script = answer(wire, due);
  assert.deepEqual(await make(bench, call, model, { url }), due.value);
  checkSent(bench, rig.b, due, call);
}

// broken are streams that break off after the client has got a part of them.
function broken(bench, call) {
  const { rig, wire } = bench;
  const ends = {
    'error event late': (res, due) => res.end(events(wire, due.error.slice(-1))[0]),
    'cut: reset': (res) => res.socket.resetAndDestroy(),
    'cut: clean end': (res) => res.end(),
  };
  for (const [fault, end] of Object.entries(ends)) {
    cell(bench, call, fault, async () => {
      const model = newModel(rig);
      const got = { pieces: 0 };
      const some = new Promise((resolve) => (got.one = resolve));
      const due = the(bench, call, 'a', model);
      rig.a.script = cutLate(wire, due, some, (res) => end(res, due));
      const err = await rejection(make(bench, call, model, { received: () => got.one(++got.pieces) }));
      assert.ok(got.pieces > 0, `nothing was received before ${err}`);
      assert.deepEqual([rig.a.requests.length, rig.b.requests.length], [1, 0]);
      return err.constructor.name;
    });
  }
}

// refused are the requests that no channel can answer.
function refused(bench, call) {
  const { client, rig, wire } = bench;
  const check = async (status, model, more) => {
    const err = await checkRaised(bench, call, status, model, more);
    assert.equal(client.code(err), client.errors[status][1]);
    assert.deepEqual([rig.a.requests.length, rig.b.requests.length], [0, 0]);
    if (status === 503 && client.header) {
      const wait = Number(client.header(err, 'retry-after'));
      assert.ok(wait >= 1 && wait <= 40, `Retry-After is ${wait}`);
    }
    return `${status} ${err.constructor.name}`;
  };
  cell(bench, call, 'unknown model', () => check(404, 'nobodys-model'));
  cell(bench, call, 'all out', async () => {
    const model = newModel(rig);
    await outage(rig, model, '40s');
    return check(503, model);
  });
  cell(bench, call, 'too large', () => check(413, newModel(rig), { text: 'x'.repeat(2 << 20) }));
  cell(bench, call, 'not readable', () => check(400, newModel(rig), { headers: { 'content-encoding': 'gzip' } }));
  cell(bench, call, 'refusal', async () => {
    const { status, body } = wire.refusal;
    rig.a.script = json(status, body);
    const err = await checkRaised(bench, call, 400, newModel(rig));
    assert.ok(`${err.message} ${err.body}`.includes(messageOf(body)), `it says ${err.message}`);
    assert.deepEqual([rig.a.requests.length, rig.b.requests.length], [1, 0]);
    return `${status} ${err.constructor.name}`;
  });
}

const messageOf = (body) => body.error?.message ?? body.message;

async function checkRaised(bench, call, status, model, more) {
  const { client } = bench;
  const err = await rejection(make(bench, call, model, more));
  assert.equal(err.constructor, client.errors[status][0], `raised ${err.stack}`);
  assert.equal(client.status(err), status);
  return err;
}

function retried(bench) {
  const { client, rig, wire } = bench;
  const test = (name, f) => it(name, { timeout: 30_000 }, () => counting(f));

  test('end a short outage of every channel', async (sent) => {
    const model = newModel(rig);
    const due = the(bench, 'chat', 'a', model);
    rig.a.script = answer(wire, due);
    await outage(rig, model, '900ms');
    const asked = make(bench, 'chat', model, { retry: true });
    if (client.retries) assert.equal(await asked, due.value);
    else assert.equal(client.status(await rejection(asked)), 503);
    assert.equal(sent.count, client.retries ? 2 : 1);
  });

  test('stop at x-should-retry: false', async (sent) => {
    const model = newModel(rig);
    await outage(rig, model, '10m');
    const err = await rejection(make(bench, 'chat', model, { retry: true }));
    assert.equal(client.status(err), 503);
    assert.equal(sent.count, 1);
  });
}

// counting counts what is sent to the gateway while f runs.
async function counting(f) {
  const sent = { count: 0 };
  const { fetch } = globalThis;
  let open = true;
  globalThis.fetch = (...request) => {
    const url = request[0].url ?? String(request[0]);
    if (open && !url.includes('/llm_gateway/')) sent.count++;
    return fetch(...request);
  };
  try {
    await f(sent);
  } finally {
    open = false;
    globalThis.fetch = fetch;
  }
}
