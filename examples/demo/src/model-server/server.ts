import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { LoopbackServer } from '../listen.ts'
import { listen } from '../listen.ts'
import { assertHistory } from './history-rules.ts'
import type { Player } from './reply.ts'
import { replyEvents, wireId } from './reply.ts'
import { Refusal } from './refusal.ts'
import type { MessagesRequest } from './wire.ts'
import { parseRequest } from './request.ts'

const maxBodyBytes = 32 * 1024 * 1024

export interface ModelServerOptions {
  /** The only model id that this server serves. */
  readonly modelId: string
  readonly player: Player
  /** Milliseconds between two pieces of a reply, so that a person sees it stream. Default 0. */
  readonly paceMs?: number
}

/**
 * A server on loopback that speaks Anthropic's Messages API, with `player` as the model: `POST /v1/messages`, streamed, with
 * the vendor's rules for requests. It keeps nothing between requests.
 */
export function startModelServer(options: ModelServerOptions): Promise<LoopbackServer> {
  return listen((request, response) => respond(request, response, options))
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  options: ModelServerOptions,
): Promise<void> {
  const requestId = wireId('req')
  response.setHeader('request-id', requestId)
  try {
    const asked = await acceptedRequest(request, options.modelId)
    await stream(response, asked, options)
  } catch (error) {
    if (response.headersSent || response.destroyed) return void response.destroy()
    const refusal = error instanceof Refusal ? error : new Refusal('api_error', 'Internal server error')
    response.writeHead(refusal.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(refusal.toBody(requestId)))
  }
}

async function acceptedRequest(request: IncomingMessage, modelId: string): Promise<MessagesRequest> {
  const [path] = request.url?.split('?') ?? []
  if (request.method !== 'POST' || path !== '/v1/messages') throw new Refusal('not_found_error', 'Not Found')
  const key = request.headers.authorization ?? request.headers['x-api-key']
  if (key === undefined)
    throw new Refusal('authentication_error', 'x-api-key or authorization header is required')
  if (request.headers['anthropic-version'] === undefined) {
    throw new Refusal('invalid_request_error', 'anthropic-version: header is required')
  }
  const asked = parseRequest(await bodyOf(request))
  assertHistory(asked)
  assertPlayable(asked, modelId)
  return asked
}

/** Refuses what the API allows but this server does not play. */
function assertPlayable(asked: MessagesRequest, modelId: string): void {
  if (asked.model !== modelId) throw new Refusal('not_found_error', `model: ${asked.model}`)
  if (asked.tool_choice?.type === 'any' || asked.tool_choice?.type === 'tool') {
    throw new Refusal(
      'invalid_request_error',
      `tool_choice: the model ${modelId} cannot be made to call a tool`,
    )
  }
  if (asked.stream !== true)
    throw new Refusal('invalid_request_error', `stream: the model ${modelId} only streams`)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) throw new Refusal('request_too_large', 'Request exceeds the maximum size')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function stream(
  response: ServerResponse,
  asked: MessagesRequest,
  options: ModelServerOptions,
): Promise<void> {
  const { paceMs = 0, player } = options
  const reply = player(asked)
  const calls = asked.tool_choice?.type === 'none' ? [] : reply.calls
  const single = asked.tool_choice?.type === 'auto' && asked.tool_choice.disable_parallel_tool_use === true
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  for (const event of replyEvents(asked, { text: reply.text, calls: single ? calls.slice(0, 1) : calls })) {
    if (response.destroyed) return
    const room = response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    if (!room) await Promise.race([once(response, 'drain'), once(response, 'close')])
    if (paceMs > 0) await wait(paceMs)
  }
  response.end()
}
