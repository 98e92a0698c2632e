import { type Agent, type RunId, RunNotFoundError } from '@tallystick/core'
import { omitUndefined, readStart } from '@tallystick/core/internal'
import { digestOf, type OutsideCommand } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import {
  callerKey,
  type Permission,
  type Principal,
  requireVisible,
  startHeaders,
} from '../http/principal.ts'
import { isServerFault, malformed, problemOf, RefusedRequestError, runNotFound } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { json, type RequestScope, requireAgent, requirePermission, type Served } from '../http/served.ts'
import { sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { stateAt } from '../runs/view.ts'
import { streamHeaders } from '../stream/followed-stream.ts'
import { type FollowedRun, protocolAnswer, protocolStream, RunReader } from '../stream/protocol.ts'
import { a2aTable, type A2aTask, type A2aUpdate, TaskView } from './map.ts'
import {
  type A2aAnswer,
  a2aCall,
  type A2aCall,
  answersOf,
  paramsOf,
  sendParams,
  type SendParams,
  taskParams,
  userPartsOf,
} from './schema.ts'

/** The card of an agent, with which clients of A2A find it: what it does, and where it listens. */
function agentCard({ name, description = `The agent ${name}.` }: Agent<unknown>, url: string): object {
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
export function addA2a(app: Hono<RequestScope>, served: Served): void {
  app.get('/a2a/:agent/.well-known/agent-card.json', (context) => {
    const agent = requireAgent(served, context.get('principal'), context.req.param('agent'))
    const { origin } = new URL(context.req.url)
    return json(agentCard(agent, `${origin}${served.basePath}/a2a/${encodeURIComponent(agent.name)}`))
  })
  app.post('/a2a/:agent', async (context) => {
    const principal = context.get('principal')
    const agent = requireAgent(served, principal, context.req.param('agent'))
    const { raw: request } = context.req
    const call = await readBody(request, a2aCall, served.body)
    try {
      return await methodOf(call)({ served, principal, agent, call, request })
    } catch (error) {
      if (isServerFault(error)) throw error
      return json({ jsonrpc: '2.0', id: call.id, error: rpcError(error) })
    }
  })
}

/** A call of a client, its caller, and the agent that it is for. */
interface A2aScope {
  readonly served: Served
  readonly principal: Principal
  readonly agent: Agent<unknown>
  readonly call: A2aCall
  readonly request: Request
}

type Method = (scope: A2aScope) => Promise<Response>

const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['SendMessage', send],
  [
    'SendStreamingMessage',
    async (scope) => streamed(scope, await taken(scope, paramsOf(sendParams, scope.call))),
  ],
  ['GetTask', async (scope) => result(scope, await taskNow(scope, await requireTask(scope)))],
  ['CancelTask', cancel],
  ['SubscribeToTask', subscribe],
])

function methodOf({ method }: A2aCall): Method {
  const found = methods.get(method)
  if (found !== undefined) return found
  throw new RefusedRequestError(
    404,
    'method_not_found',
    `There is no method ${method.slice(0, 80)} here. The agent card says which protocol and version is served.`,
  )
}

async function send(scope: A2aScope): Promise<Response> {
  const params = paramsOf(sendParams, scope.call)
  const run = await taken(scope, params)
  if (!params.configuration?.returnImmediately) await rested(scope, run)
  return result(scope, { task: await taskNow(scope, run.runId) })
}

/** Resolves when a run has ended, waits, or is left to another process. */
async function rested({ served, request: { signal } }: A2aScope, run: FollowedRun): Promise<void> {
  await protocolAnswer(served, run, a2aTable(), { ...served.stream, signal })
}

async function cancel(scope: A2aScope): Promise<Response> {
  const { served, principal } = scope
  const runId = await requireTask(scope)
  const { phase, seq: after } = await stateAt(served.ledger, runId)
  if (phase === 'done') {
    throw new RefusedRequestError(
      409,
      notCancelable,
      `Task ${runId} has ended, so there is nothing to cancel. Get the task to see how it ended.`,
    )
  }
  await command(scope, 'cancel', runId, { type: 'cancel', by: principal.name })
  await rested(scope, { runId, after })
  return result(scope, await taskNow(scope, runId))
}

async function subscribe(scope: A2aScope): Promise<Response> {
  const runId = await requireTask(scope)
  const { phase, seq } = await stateAt(scope.served.ledger, runId)
  if (phase === 'done') throw ended(runId)
  return streamed(scope, { runId, after: seq })
}

/** Starts the run that a message asks for, or delivers the message to the run that it names. */
async function taken(scope: A2aScope, { message }: SendParams): Promise<FollowedRun> {
  const { served, principal, agent } = scope
  const [parts, answers] = [userPartsOf(message), answersOf(message)]
  const idempotencyKey = callerKey(principal, `a2a:${message.messageId}`)
  if (!message.taskId) {
    requirePermission(principal, 'start')
    if (parts.length === 0) throw malformed('The message has neither a text nor a file.')
    // The same message begins the same conversation, however often it is sent.
    const sessionId = message.contextId ?? digestOf(['context of message', idempotencyKey ?? null])
    const order = { agent: agent.name, input: parts, sessionId }
    const { id } = await startRun(served, principal, order, {
      ...startHeaders(scope.request, principal),
      ...omitUndefined({ idempotencyKey }),
    })
    return { runId: id, after: 0 }
  }
  const runId = await requireTask(scope, message.taskId)
  const { phase, seq: after } = await stateAt(served.ledger, runId)
  if (phase === 'done') throw ended(runId)
  if (parts.length > 0) {
    const steer = {
      type: 'steer',
      message: { role: 'user', parts },
      receipt: idempotencyKey ?? message.messageId,
    } as const
    await command(scope, 'steer', runId, steer)
  }
  for (const answer of answers) await answered(scope, runId, answer)
  return { runId, after }
}

async function answered(scope: A2aScope, runId: RunId, answer: A2aAnswer): Promise<void> {
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
  await command(scope, 'settle', runId, { type: 'settle', toolCallId, outcome: 'success', content })
}

async function command(
  { served, principal }: A2aScope,
  permission: Permission,
  runId: RunId,
  sent: OutsideCommand,
): Promise<void> {
  requirePermission(principal, permission)
  const answer = await served.runtime.send(runId, sent, { context: served.context })
  if (!answer.accepted) throw new RefusedRequestError(409, answer.code, answer.message)
}

/** The run of a task of this agent that the caller sees. */
async function requireTask({ served, principal, agent, call }: A2aScope, id?: string): Promise<RunId> {
  const named = id ?? paramsOf(taskParams, call).id
  const runId = await requireVisible(served.ledger, principal, named)
  if ((await readStart(served.ledger, runId))?.agent === agent.name) return runId
  throw runNotFound(named)
}

/** The task as the ledger has it now. */
async function taskNow({ served }: A2aScope, runId: RunId): Promise<A2aTask> {
  const view = new TaskView()
  const reader = new RunReader<A2aUpdate>(served.ledger, { after: 0 }, a2aTable(view))
  for await (const event of served.ledger.read(runId)) reader.read(event)
  await reader.endAtWait()
  return view.task
}

function result({ call }: A2aScope, value: object): Response {
  return json({ jsonrpc: '2.0', id: call.id, result: value })
}

function streamed({ served, call }: A2aScope, run: FollowedRun): Response {
  const protocol = {
    newTable: () => a2aTable(),
    textOf: (update: A2aUpdate) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', id: call.id, result: update })}\n\n`,
    ending: '',
  }
  return new Response(protocolStream(served, run, protocol, served.stream), { headers: streamHeaders })
}

function ended(runId: RunId): RefusedRequestError {
  return new RefusedRequestError(
    409,
    'run_finished',
    `Task ${runId} has ended. Send a message with its contextId and no taskId to continue the conversation.`,
  )
}

const notCancelable = 'not_cancelable'

/** Returns an error with the codes of JSON-RPC and of A2A. */
function rpcError(error: unknown): object {
  const { code, detail, status } = problemOf(error)
  const data = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code, domain: 'tallystick' }]
  return { code: rpcCode(error, code, status), message: detail, data }
}

function rpcCode(error: unknown, code: string, status: number): number {
  if (error instanceof RunNotFoundError) return -32_001
  if (code === 'method_not_found') return -32_601
  if (code === notCancelable) return -32_002
  if (status === 400) return -32_602
  return -32_004
}
