import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Message, type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import { formatLegibly, option, requireOptions } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  ModelRef,
  ModelSignal,
  ToolCallId,
  ToolResult,
} from '@tallystick/core/vocabulary'
import { type Observable, take } from 'rxjs'
import { type ManualClock, manualClock } from '../doubles/clock.ts'
import {
  type ContractReply,
  type ModelHarness,
  type Need,
  needs,
  require,
  type Scene,
  type Stage,
} from './case.ts'

export interface CallOutcome {
  readonly signals: readonly ModelSignal[]
  /** Absent if the call completed. */
  readonly failure?: ProviderError
  readonly clock: ManualClock
}

export interface CallWatch {
  readonly clock?: ManualClock
  /** Gives the call up at the signal of this number, from 1. */
  readonly count?: number
  /** Sees each signal as it comes, and how many there were before it. */
  readonly onSignal?: (signal: ModelSignal, before: number, clock: ManualClock) => void
}

/** Calls the model and waits for the end. Rejects if it fails with anything but a `ProviderError`. */
export function callModel(
  model: Model,
  request: ModelRequest,
  watched: CallWatch = {},
): Promise<CallOutcome> {
  const clock = watched.clock ?? manualClock()
  const signals: ModelSignal[] = []
  return new Promise((resolve, reject) => {
    const signals$ = openModelStream(model, request, clock).pipe(take(watched.count ?? Infinity))
    signals$.subscribe({
      next: (signal) => {
        signals.push(signal)
        watched.onSignal?.(signal, signals.length - 1, clock)
      },
      complete: () => resolve({ signals, clock }),
      error: (error: unknown) => {
        if (error instanceof ProviderError) resolve({ signals, failure: error, clock })
        else reject(createStrayError('a call fails with a ProviderError and nothing else', error))
      },
    })
  })
}

function openModelStream(model: Model, request: ModelRequest, clock: ManualClock): Observable<ModelSignal> {
  try {
    return model.stream(request, { clock })
  } catch (cause) {
    throw createStrayError('stream() throws nothing, whatever the request', cause)
  }
}

function createStrayError(claim: string, cause: unknown): Error {
  return new Error(`Not so: ${claim}. It is ${formatLegibly(cause)}.`, { cause })
}

/** Sets the stage, plays on it, and takes it down. */
export async function playOnStage<T>(
  harness: ModelHarness,
  scenes: readonly Scene[],
  play: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stage = await harness.stage(scenes)
  try {
    return await play(stage)
  } finally {
    await stage.close()
  }
}

/** Waits until a condition holds, and checks it once per turn of the event loop. */
export async function waitUntil(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; turns < maxTurns; turns++) {
    if (holds()) return
    await waitForLoop()
  }
  require(holds(), what)
}

const maxTurns = 2000

/** Lets everything happen that is about to. */
function waitForLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Returns the end of a reply. Throws if the call failed, or if its last signal is another one. */
export function readEnd({
  signals,
  failure,
}: CallOutcome): Extract<ModelSignal, { readonly type: 'model_finished' }> {
  if (failure) throw new Error(`Not so: the call completes. It failed: ${failure.message}`)
  const end = signals.at(-1)
  if (end?.type !== 'model_finished') throw new Error('Not so: the last signal is model_finished.')
  return end
}

/** A wire, as `httpHarness` needs it. */
export interface HttpWire {
  /** The model, to be found at this address. Its own timeouts, retries and the like as they are by default. */
  readonly model: (baseURL: string) => Model
  /** A reply on this wire, one piece an event, in order, and how many events prove it whole: all, where not said. */
  readonly reply: (reply: ContractReply) => { readonly events: readonly string[]; readonly proof?: number }
  readonly contentType: string
  /** The body of an answer that refuses, in the vendor's words. */
  readonly refusal: (status: number, words: string) => string
  /** The names by which a request offers its tools. */
  readonly toolNames: (body: unknown) => readonly string[]
  /** The key that `model` got, and that must appear nowhere. */
  readonly secret?: string | undefined
  /** The rules of the vendor that a request breaks, one line each. */
  readonly brokenRules?: ((body: unknown) => readonly string[]) | undefined
  readonly lacks?: readonly Need[] | undefined
}

const { anyFunction, fields, filledText, listOf, maybe, oneOf } = option
const httpWire = fields<HttpWire>({
  model: anyFunction,
  reply: anyFunction,
  contentType: filledText,
  refusal: anyFunction,
  toolNames: anyFunction,
  secret: maybe(filledText),
  brokenRules: maybe(anyFunction),
  lacks: maybe(listOf(oneOf(needs))),
})

/** A harness for an adapter that speaks HTTP: a server on the loopback interface plays the other side. Throws `ConfigurationError` for a wrong wire. */
export function httpHarness(wire: HttpWire): ModelHarness {
  requireOptions('httpHarness', httpWire, wire)
  return {
    ...(wire.secret !== undefined && { secret: wire.secret }),
    ...(wire.brokenRules && { brokenRules: wire.brokenRules }),
    ...(wire.lacks && { lacks: wire.lacks }),
    measure(reply) {
      const { events, proof } = wire.reply(reply)
      return { events: events.length, proof: proof ?? events.length }
    },
    stage: (scenes) => openStage(wire, scenes),
  }
}

/** Something that happens to calls, which may be waited for before it has. */
interface Milestones {
  reach(place: number): void
  reached(place: number): Promise<void>
}

function createMilestones(): Milestones {
  const promises: { readonly promise: Promise<void>; readonly resolve: () => void }[] = []
  const at = (place: number): (typeof promises)[number] => {
    while (promises.length <= place) {
      let resolve: () => void = () => {}
      const promise = new Promise<void>((done) => (resolve = done))
      promises.push({ promise, resolve })
    }
    return promises[place]!
  }
  return { reach: (place) => at(place).resolve(), reached: (place) => at(place).promise }
}

/** No server listens here: a port that was free a moment ago may be another's by now, and this one is given to none. */
const closedPort = 3

async function openStage(wire: HttpWire, scenes: readonly Scene[]): Promise<Stage> {
  const bodies: unknown[] = []
  const [begun, closed] = [createMilestones(), createMilestones()]
  // Loaded when a stage opens, so that the contract of ledgers also runs in a browser.
  const { createServer } = await import('node:http')
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const place = bodies.length
      bodies.push(body)
      request.socket.once('close', () => closed.reach(place))
      begun.reach(place)
      return play(wire, scenes[Math.min(place, scenes.length - 1)]!, body, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const isThere = scenes[0]?.type !== 'nobody'
  if (!isThere) await stopServer(server)
  return {
    model: wire.model(`http://127.0.0.1:${isThere ? port : closedPort}`),
    bodies,
    begun: (place) => begun.reached(place),
    closed: (place) => closed.reached(place),
    close: () => stopServer(server),
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? null : JSON.parse(text)
}

function stopServer(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

async function play(wire: HttpWire, scene: Scene, body: unknown, response: ServerResponse): Promise<void> {
  response.on('error', () => {})
  switch (scene.type) {
    case 'mute':
    case 'nobody':
      return
    case 'page':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html><h1>Log in</h1></html>')
      return
    case 'refusal': {
      const words = `This call was refused${wire.secret === undefined ? '' : ` (${wire.secret})`}`
      const wait = scene.retryAfterSeconds
      response
        .writeHead(scene.status, {
          'content-type': 'application/json',
          ...(wait !== undefined && { 'retry-after': String(wait) }),
        })
        .end(wire.refusal(scene.status, words))
      return
    }
    case 'reply':
      await playReply(wire, scene, body, response)
  }
}

async function playReply(
  wire: HttpWire,
  { reply, events: count, ending = 'end', pieceBytes }: Extract<Scene, { type: 'reply' }>,
  body: unknown,
  response: ServerResponse,
): Promise<void> {
  const { events } = wire.reply(typeof reply === 'function' ? reply(wire.toolNames(body)) : reply)
  response.writeHead(200, { 'content-type': wire.contentType }).flushHeaders()
  for (const piece of cutPieces(events.slice(0, count), pieceBytes)) {
    await new Promise<void>((resolve) => void response.write(piece, () => resolve()))
    // Pieces that wait together on the other side become one there.
    if (pieceBytes !== undefined) await waitForLoop()
  }
  if (ending === 'break') response.socket?.resetAndDestroy()
  if (ending === 'end') response.end()
}

function cutPieces(events: readonly string[], size: number | undefined): readonly (string | Uint8Array)[] {
  if (size === undefined) return events
  const bytes = new TextEncoder().encode(events.join(''))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) =>
    bytes.subarray(place * size, (place + 1) * size),
  )
}

/** A request that every model can answer. */
export const plainRequest: ModelRequest = {
  instructions: 'Be brief.',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
  toolChoice: { type: 'auto' },
  parallelToolCalls: true,
}

const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }

/** The same with two tools. */
export const toolRequest: ModelRequest = {
  ...plainRequest,
  tools: [
    { name: 'get_weather', description: 'Says the weather.', inputSchema },
    { name: 'get_time', description: 'Says the time.', inputSchema: { type: 'object' } },
  ],
}

/** Words of several bytes a character, in several pieces. */
export const spokenReply: ContractReply = {
  text: ['Grüß dich! ', 'In Seoul (서울) it is ', '🌦️.\n'],
  stop: 'end',
  usage: { inputTokens: 12, outputTokens: 34 },
}

/** Words and three calls: one with input, one without, and one more of the first tool. */
export const replyWithCall: ContractReply = {
  text: ['Let me look.'],
  calls: [
    { id: 'call_a1', name: 'get_weather', input: { city: 'Seoul — 서울', nested: { days: [1, 2.5, null] } } },
    { id: 'call_b2', name: 'get_time', input: {} },
    { id: 'call_c3', name: 'get_weather', input: { city: 'Busan' } },
  ],
  stop: 'tool_use',
  usage: { inputTokens: 120, outputTokens: 64 },
}

export const replying = (
  reply: ContractReply,
  more: Partial<Extract<Scene, { type: 'reply' }>> = {},
): Scene => ({
  type: 'reply',
  reply,
  ...more,
})

/** An id of a call, as the runtime mints it. */
export function makeCallId(ordinal: number): ToolCallId {
  return `call_${'0'.repeat(32)}_1_1_${ordinal}` as ToolCallId
}

const elsewhere: ModelRef = { provider: 'elsewhere', api: 'other', modelId: 'other-1' }
const opaque = { provider: 'elsewhere', api: 'other', data: { id: 'rs_1', secret: ['x'] } }

/** A reply as the history holds it, from another vendor where `model` is not said. */
function reply(parts: AssistantMessage['parts'], more: Partial<AssistantMessage> = {}): AssistantMessage {
  return { role: 'assistant', parts, model: elsewhere, stopReason: 'end', partial: false, ...more }
}

function result(ordinal: number, name: string, more: Partial<ToolResult> = {}): ToolResult {
  const content = [{ type: 'text' as const, text: `the result ${ordinal}` }]
  return { toolCallId: makeCallId(ordinal), name, outcome: 'success', content, ...more }
}

function call(ordinal: number, name: string): AssistantMessage['parts'][number] {
  return {
    type: 'tool_call',
    toolCallId: makeCallId(ordinal),
    providerCallId: 'call_0',
    name,
    input: { n: ordinal },
  }
}

const user = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const png = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }

/** Histories that the runtime can come to, named by what is hard about them. */
export function listHardHistories(
  own: ModelRef,
): readonly (readonly [name: string, messages: readonly Message[]])[] {
  return [
    ['no message at all', []],
    ['a message without a word', [user('')]],
    ['half of a surrogate pair', [user('half \ud83d a pair')]],
    ['two messages of the user in a row', [user('a'), user('b')]],
    ['a reply that comes first', [reply([{ type: 'text', text: 'Hi' }]), user('x')]],
    [
      'a reply in which nothing was said',
      [user('a'), reply([], { partial: true, stopReason: 'cancelled' }), user('b')],
    ],
    [
      'a reply that was cut in its thinking',
      [user('a'), reply([{ type: 'reasoning', text: 'hm' }], { model: own, partial: true }), user('b')],
    ],
    [
      'what another vendor needs back',
      [
        user('a'),
        reply([
          { type: 'reasoning', text: 'hm', opaque },
          { type: 'provider', kind: 'web_search_call', opaque },
          { type: 'text', text: 'b', opaque },
        ]),
        user('c'),
      ],
    ],
    [
      'calls under one id of another vendor, and tools that are no longer offered',
      [
        user('a'),
        reply([call(1, 'files/read'), call(2, 'files.read')], { stopReason: 'tool_use' }),
        { role: 'tool', results: [result(1, 'files/read'), result(2, 'files.read', { outcome: 'failed' })] },
      ],
    ],
    [
      'results that are empty, errors without words, and pictures',
      [
        user('a'),
        reply([call(1, 'f'), call(2, 'f'), call(3, 'f')], { model: own, stopReason: 'tool_use' }),
        {
          role: 'tool',
          results: [
            result(1, 'f', { content: [] }),
            result(2, 'f', { content: [], outcome: 'interrupted' }),
            result(3, 'f', { content: [png, { type: 'text', text: 'see' }] }),
          ],
        },
      ],
    ],
    [
      'a picture, an address of one, and files',
      [
        {
          role: 'user',
          parts: [
            png,
            { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' },
            { type: 'file', mediaType: 'application/zip', data: 'aGk=', name: 'a.zip' },
            { type: 'file', mediaType: 'text/plain', data: 'aGk=' },
          ],
        },
      ],
    ],
  ]
}
