import { omitUndefined } from '@tallystick/core/kit'
import type { Hono } from 'hono'
import { RefusedRequestError, malformed } from '../http/problem.ts'
import { readBody } from '../http/read-body.ts'
import { includes } from '../access/principal.ts'
import { streamHeaders } from '../stream/sse-frame.ts'
import { protocolAnswer } from '../protocols/protocol-answer.ts'
import { protocolStream, type FollowedRun, type RunProtocol } from '../protocols/protocol-stream.ts'
import { chatAnswerTable, chatChunkTable, type ChatChunk } from '../facade/chat-chunks.ts'
import { chatRequest, itemsInMessages } from '../facade/chat-request.ts'
import { settingsFrom } from '../facade/request-fields.ts'
import { responseTable, type ResponseEvent, type ResponseNames } from '../facade/response-events.ts'
import { runOfResponse } from '../facade/response-id.ts'
import { responseRequest, itemsInInput } from '../facade/response-request.ts'
import { startHeaders } from '../access/start-headers.ts'
import { json, requireAgent, type RequestScope, type Served } from '../routes/served.ts'
import { orderedRun } from './openai-run.ts'

/** Adds the routes for clients of OpenAI: a model is an agent, and each request starts a run or continues one. */
export function addOpenAi(app: Hono<RequestScope>, served: Served): void {
  app.get('/v1/models', (context) => {
    const { sees } = context.get('principal')
    const isSeen = (name: string): boolean => sees === 'everything' || includes(sees.agents, name)
    const data = [...served.agents.keys()].filter(isSeen).map(modelOf)
    return json({ object: 'list', data })
  })
  app.get('/v1/models/:model', (context) => {
    const { name } = requireAgent(served, context.get('principal'), context.req.param('model'))
    return json(modelOf(name))
  })
  app.post('/v1/responses', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, responseRequest, served.body)
    const { model, previous_response_id: previous, conversation, metadata } = body
    const run = await orderedRun(served, principal, {
      agent: model,
      items: itemsInInput(body.input),
      previous: previous == null ? undefined : requireResponse(previous),
      sessionId: typeof conversation === 'string' ? conversation : conversation?.id,
      metadata,
      settings: settingsFrom({
        temperature: body.temperature,
        topP: body.top_p,
        maxOutputTokens: body.max_output_tokens,
        reasoningEffort: body.reasoning?.effort,
      }),
      tools: body.tools,
      toolChoice: body.tool_choice,
      parallelToolCalls: body.parallel_tool_calls,
      ...startHeaders(request, principal),
    })
    const names: ResponseNames = {
      model,
      ...omitUndefined({ previousResponseId: previous ?? undefined, metadata: metadata ?? undefined }),
    }
    if (body.stream) return streamed(served, run, responseProtocol(names))
    const last = await protocolAnswer(served, run, responseTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    return json(last?.['response'] ?? gone(run))
  })
  app.post('/v1/chat/completions', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, chatRequest, served.body)
    const { model, stop } = body
    const run = await orderedRun(served, principal, {
      agent: model,
      items: itemsInMessages(body.messages),
      metadata: body.metadata,
      settings: settingsFrom({
        temperature: body.temperature,
        topP: body.top_p,
        stop: typeof stop === 'string' ? [stop] : stop,
        seed: body.seed,
        maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
        reasoningEffort: body.reasoning_effort,
      }),
      tools: body.tools,
      toolChoice: body.tool_choice,
      parallelToolCalls: body.parallel_tool_calls,
      ...startHeaders(request, principal),
    })
    const names = { model, includesUsage: body.stream_options?.include_usage }
    if (body.stream) return streamed(served, run, chatProtocol(names))
    const answer = await protocolAnswer(served, run, chatAnswerTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    if (answer === undefined) return gone(run)
    return json(answer.body, answer.status, answer.status === 200 ? {} : { 'x-should-retry': 'false' })
  })
}

function modelOf(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'tallystick' }
}

function requireResponse(id: string): NonNullable<ReturnType<typeof runOfResponse>> {
  const runId = runOfResponse(id)
  if (runId !== undefined) return runId
  throw malformed('previous_response_id is no id of a response of this server.')
}

/** The server stops while a client waits: the run is on record, and continues elsewhere. */
function gone({ runId }: FollowedRun): never {
  throw new RefusedRequestError(
    503,
    'run_continues',
    `This process stops, and run ${runId} continues in another one. GET /runs/${runId}/result there gives its answer.`,
  )
}

function streamed<Out>(served: Served, run: FollowedRun, protocol: RunProtocol<Out>): Response {
  return new Response(protocolStream(served, run, protocol, served.stream), { headers: streamHeaders })
}

function responseProtocol(names: ResponseNames): RunProtocol<ResponseEvent> {
  return {
    newTable: () => responseTable(names),
    textOf: (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    ending: '',
  }
}

function chatProtocol(names: Parameters<typeof chatChunkTable>[0]): RunProtocol<ChatChunk> {
  return {
    newTable: () => chatChunkTable(names),
    textOf: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
    ending: 'data: [DONE]\n\n',
  }
}
