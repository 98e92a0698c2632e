import { type Agent, type RunId, RunNotFoundError } from '@tallystick/core'
import { omitUndefined, readStart } from '@tallystick/core/internal'
import { computeDigest, type UserPart } from '@tallystick/core/vocabulary'
import { toCallerKey, type Principal, requireVisible, readStartHeaders } from '../http/principal.ts'
import {
  isServerFault,
  createMalformedError,
  toProblem,
  RefusedRequestError,
  createRunNotFoundError,
} from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { respondJson, requireAgent, type Served } from '../http/served.ts'
import { sendCommand, sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { readState } from '../runs/view.ts'
import { type FollowedRun, awaitAnswer, streamRun, RunReader } from '../stream/protocol.ts'
import { type A2aTask, type A2aUpdate, TaskView } from './map.ts'
import * as z from 'zod'

/** A call of JSON-RPC 2.0. */
const a2aCall = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.unknown().optional(),
})
type A2aCall = z.infer<typeof a2aCall>

const id = z.string().regex(/^[\x21-\x7e]{1,190}$/, 'has to be 1 to 190 visible ASCII characters')

/** A message of a client, whose parts are texts, data and files. */
const sendParams = z.looseObject({
  message: z.looseObject({
    messageId: id,
    taskId: z.string().optional(),
    contextId: id.optional(),
    parts: z
      .array(
        z.looseObject({
          text: z.string().optional(),
          raw: z.base64().optional(),
          url: z.url({ protocol: /^https?$/ }).optional(),
          data: z.unknown().optional(),
          filename: z.string().optional(),
          mediaType: z.string().optional(),
        }),
      )
      .min(1),
  }),
  configuration: z.looseObject({ returnImmediately: z.boolean().optional() }).optional(),
})

type SendParams = z.infer<typeof sendParams>
type A2aMessage = SendParams['message']

const taskParams = z.looseObject({ id: z.string() })

/** Checks the parameters of a call. */
function parseParams<Params>(schema: z.ZodType<Params>, { params }: A2aCall): Params {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw createMalformedError(`The params do not fit: ${issue?.path.join('.')}: ${issue?.message}.`)
}

/** Reads the text and files of a message. */
function readUserParts({ parts }: A2aMessage): readonly UserPart[] {
  return parts.flatMap(
    ({ text, raw, url, filename, mediaType = 'application/octet-stream' }): readonly UserPart[] => {
      if (text) return [{ type: 'text', text }]
      const content = raw === undefined ? url !== undefined && { url } : { data: raw }
      if (!content) return []
      if (mediaType.startsWith('image/')) return [{ type: 'image', mediaType, ...content }]
      return [{ type: 'file', mediaType, ...content, ...(filename && { name: filename }) }]
    },
  )
}

/** An answer to a run that waits: a decision, or the result of a call. */
const answer = z.union([
  z.strictObject({
    approvalId: z.string(),
    approved: z.boolean(),
    reason: z.string().optional(),
    input: z.record(z.string(), z.json()).optional(),
  }),
  z.strictObject({ toolCallId: z.string(), result: z.string() }),
])

type A2aAnswer = z.infer<typeof answer>

/** Returns the answers of a message: one in each data part. */
function readAnswers({ parts }: A2aMessage): readonly A2aAnswer[] {
  return parts.flatMap(({ data }) => {
    if (data === undefined) return []
    const parsed = answer.safeParse(data)
    if (parsed.success) return [parsed.data]
    throw createMalformedError(
      'A part of data has to be { approvalId, approved, reason?, input? } or { toolCallId, result }.',
    )
  })
}

/** The card by which clients of A2A find an agent. */
function toAgentCard({ name, description = `The agent ${name}.` }: Agent<unknown>, url: string): object {
  const modes = ['text/plain']
  const scheme = {
    scheme: 'Bearer',
    description: 'What the application reads from a request.',
    bearerFormat: '',
  }
  return {
    name,
    description,
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: { bearer: { httpAuthSecurityScheme: scheme } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        ...{ id: name, name, description, tags: [], examples: [] },
        ...{ inputModes: modes, outputModes: modes, securityRequirements: [] },
      },
    ],
    signatures: [],
  }
}

/** Adds the routes for clients of A2A 1.0, over JSON-RPC: a task is a run, and its context a session. */
export function addA2a(routes: Routes): void {
  const { served } = routes
  routes.get(
    '/a2a/:agent/.well-known/agent-card.json',
    {
      operationId: 'readAgentCard',
      summary: 'The card of an agent, for clients of A2A.',
      answers: { 200: 'The card.' },
      fields: ['name', 'description', 'supportedInterfaces', 'skills'],
    },
    ({ principal, req }) => {
      const agent = requireAgent(served, principal, req.param('agent'))
      const { origin } = new URL(req.url)
      const url = `${origin}${served.basePath}/a2a/${encodeURIComponent(agent.name)}`
      return respondJson(toAgentCard(agent, url))
    },
  )
  routes.post(
    '/a2a/:agent',
    {
      operationId: 'callAgent',
      summary: 'A call of A2A over JSON-RPC.',
      parameters: ['traceparent'],
      body: {
        name: 'A2aCall',
        schema: a2aCall,
        example: {
          ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
          params: { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Pay the bill.' }] } },
        },
      },
      answers: { 200: 'The result, or the error of the call.' },
      fields: ['jsonrpc', 'id'],
      stream: 'accepted',
    },
    async ({ principal, req, readBody }) => {
      const agent = requireAgent(served, principal, req.param('agent'))
      const call = await readBody()
      try {
        return await carryOut({ served, principal, agent, call, request: req.raw })
      } catch (error) {
        if (isServerFault(error)) throw error
        return respondJson({ jsonrpc: '2.0', id: call.id, error: toRpcError(error) })
      }
    },
  )
}

interface A2aScope {
  readonly served: Served
  readonly principal: Principal
  readonly agent: Agent<unknown>
  readonly call: A2aCall
  readonly request: Request
}

async function carryOut(scope: A2aScope): Promise<Response> {
  const { method } = scope.call
  switch (method) {
    case 'SendMessage': {
      const params = parseParams(sendParams, scope.call)
      const run = await deliverMessage(scope, params)
      if (!params.configuration?.returnImmediately) await waitUntilIdle(scope, run)
      return respond(scope, { task: await readTask(scope, run.runId) })
    }
    case 'SendStreamingMessage':
      return streamTask(scope, await deliverMessage(scope, parseParams(sendParams, scope.call)))
    case 'GetTask':
      return respond(scope, await readTask(scope, await requireTask(scope)))
    case 'CancelTask':
      return await cancel(scope)
    case 'SubscribeToTask': {
      const runId = await requireTask(scope)
      const { phase, seq: after } = await readState(scope.served.ledger, runId)
      if (phase === 'done') throw createTaskEndedError(runId)
      return streamTask(scope, { runId, after })
    }
    default:
      throw new RefusedRequestError(
        404,
        'method_not_found',
        `There is no method ${method.slice(0, 80)} here. The agent card says which protocol and version is served.`,
      )
  }
}

/** Resolves when a run has ended, waits, or is left to another process. */
async function waitUntilIdle({ served, request: { signal } }: A2aScope, run: FollowedRun): Promise<void> {
  await awaitAnswer(served, run, new TaskView().table, signal)
}

async function cancel(scope: A2aScope): Promise<Response> {
  const { served, principal } = scope
  const runId = await requireTask(scope)
  const { phase, seq: after } = await readState(served.ledger, runId)
  if (phase === 'done') {
    throw new RefusedRequestError(
      409,
      notCancelable,
      `Task ${runId} has ended, so there is nothing to cancel. Get the task to see how it ended.`,
    )
  }
  await sendCommand(served, principal, runId, { type: 'cancel', by: principal.name })
  await waitUntilIdle(scope, { runId, after })
  return respond(scope, await readTask(scope, runId))
}

/** Starts the run that a message asks for, or delivers the message to the run that it names. */
async function deliverMessage(scope: A2aScope, { message }: SendParams): Promise<FollowedRun> {
  const { served, principal, agent } = scope
  const [parts, answers] = [readUserParts(message), readAnswers(message)]
  const idempotencyKey = toCallerKey(principal, `a2a:${message.messageId}`)
  if (!message.taskId) {
    if (parts.length === 0) throw createMalformedError('The message has neither a text nor a file.')
    // The same message begins the same conversation, however often it is sent.
    const sessionId = message.contextId ?? computeDigest(['context of message', idempotencyKey ?? null])
    const order = { agent: agent.name, input: parts, sessionId }
    const { id } = await startRun(served, principal, order, {
      ...readStartHeaders(scope.request, principal),
      ...omitUndefined({ idempotencyKey }),
    })
    return { runId: id, after: 0 }
  }
  const runId = await requireTask(scope, message.taskId)
  const { phase, seq: after } = await readState(served.ledger, runId)
  if (phase === 'done') throw createTaskEndedError(runId)
  if (parts.length > 0) {
    const steer = {
      type: 'steer',
      message: { role: 'user', parts },
      receipt: idempotencyKey ?? message.messageId,
    } as const
    await sendCommand(served, principal, runId, steer)
  }
  for (const answer of answers) await sendAnswer(scope, runId, answer)
  return { runId, after }
}

async function sendAnswer(scope: A2aScope, runId: RunId, answer: A2aAnswer): Promise<void> {
  if ('approvalId' in answer) {
    const { approvalId, approved, reason = 'Denied.', input } = answer
    await sendDecision(scope.served, scope.principal, runId, {
      approvalId,
      approved,
      reason,
      ...omitUndefined({ input }),
    })
    return
  }
  const { toolCallId, result: text } = answer
  const content = [{ type: 'text', text }] as const
  const settle = { type: 'settle', toolCallId, outcome: 'success', content } as const
  await sendCommand(scope.served, scope.principal, runId, settle)
}

/** Finds the run of a task of this agent that the caller sees. */
async function requireTask({ served, principal, agent, call }: A2aScope, id?: string): Promise<RunId> {
  const named = id ?? parseParams(taskParams, call).id
  const runId = await requireVisible(served.ledger, principal, named)
  if ((await readStart(served.ledger, runId))?.agent === agent.name) return runId
  throw createRunNotFoundError(named)
}

async function readTask({ served }: A2aScope, runId: RunId): Promise<A2aTask> {
  const view = new TaskView()
  const reader = new RunReader<A2aUpdate>(served.ledger, { after: 0 }, view.table)
  for await (const event of served.ledger.read(runId)) reader.read(event)
  await reader.endAtWait()
  return view.task
}

function respond({ call }: A2aScope, value: object): Response {
  return respondJson({ jsonrpc: '2.0', id: call.id, result: value })
}

function streamTask({ served, call }: A2aScope, run: FollowedRun): Response {
  return streamRun<A2aUpdate>(served, run, {
    newTable: () => new TaskView().table,
    format: (result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: call.id, result })}\n\n`,
    ending: '',
  })
}

function createTaskEndedError(runId: RunId): RefusedRequestError {
  return new RefusedRequestError(
    409,
    'run_finished',
    `Task ${runId} has ended. Send a message with its contextId and no taskId to continue the conversation.`,
  )
}

const notCancelable = 'not_cancelable'

/** Returns an error with the codes of JSON-RPC and of A2A. */
function toRpcError(error: unknown): object {
  const { code: reason, detail: message, status } = toProblem(error)
  let code = status === 400 ? -32_602 : -32_004
  if (error instanceof RunNotFoundError) code = -32_001
  if (reason === 'method_not_found') code = -32_601
  if (reason === notCancelable) code = -32_002
  const data = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'tallystick' }]
  return { code, message, data }
}
