import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Model } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { turnOfTheLoop } from './call-outcome.ts'
import {
  type ContractReply,
  type ModelHarness,
  type Need,
  needs,
  type Scene,
  type Stage,
} from './contract-case.ts'

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

function milestones(): Milestones {
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
  const [begun, closed] = [milestones(), milestones()]
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const place = bodies.length
      bodies.push(body)
      request.socket.once('close', () => closed.reach(place))
      begun.reach(place)
      return play({ wire, scene: scenes[Math.min(place, scenes.length - 1)]!, body, response })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const isThere = scenes[0]?.type !== 'nobody'
  if (!isThere) await stopped(server)
  return {
    model: wire.model(`http://127.0.0.1:${isThere ? port : closedPort}`),
    bodies,
    begun: (place) => begun.reached(place),
    closed: (place) => closed.reached(place),
    close: () => stopped(server),
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? null : JSON.parse(text)
}

function stopped(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

interface Performance {
  readonly wire: HttpWire
  readonly scene: Scene
  readonly body: unknown
  readonly response: ServerResponse
}

async function play({ wire, scene, body, response }: Performance): Promise<void> {
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
  for (const piece of piecesOf(events.slice(0, count), pieceBytes)) {
    await new Promise<void>((resolve) => void response.write(piece, () => resolve()))
    // Pieces that wait together on the other side become one there.
    if (pieceBytes !== undefined) await turnOfTheLoop()
  }
  if (ending === 'break') response.socket?.resetAndDestroy()
  if (ending === 'end') response.end()
}

function piecesOf(events: readonly string[], size: number | undefined): readonly (string | Uint8Array)[] {
  if (size === undefined) return events
  const bytes = new TextEncoder().encode(events.join(''))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) =>
    bytes.subarray(place * size, (place + 1) * size),
  )
}
