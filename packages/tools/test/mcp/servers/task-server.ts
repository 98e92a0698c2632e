// A server over HTTP whose one tool is called only as a task, as revision 2025-11-25 has it; without any library, so that it
// can answer whatever a test wants.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { served, type ServedUrl } from './http-servers.ts'

/** What a server says when it is asked for a task: its state, an error, that it does not know the session, or nothing. */
export type Said =
  | { readonly status: string; readonly statusMessage?: string }
  | { readonly error: string }
  | 'break'
  | 'forget'

/** How a task continues. */
export interface TaskPlan {
  /** The answers to questions for its state; the last one is repeated. */
  readonly states: readonly Said[]
  /** What its result is, or the message of the error that it ended with; `'never'`: held back. */
  readonly result?: object | string
  /** The milliseconds between questions that the server wishes for. */
  readonly pollInterval?: number
  /** Whether the server says that it takes calls as tasks. Default: it does. */
  readonly hasTasks?: boolean
  /** What the server answers in the place of a new task; `'never'`: nothing. */
  readonly created?: object | 'never'
}

/** A server of tasks, and what it was asked. */
export interface TaskServer extends ServedUrl {
  /** The methods of the tools and tasks, in order. */
  readonly asked: string[]
  /** Answers what was held back. */
  release(): void
}

interface Request {
  readonly id?: number
  readonly method: string
  readonly params?: object
}

const taskId = 'task-1'
const worked = { content: [{ type: 'text', text: 'worked' }] }
const dates = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: null }

/** Serves the tool `work`; what becomes of a call, `plan` says. */
export async function taskServer(plan: TaskPlan): Promise<TaskServer> {
  const asked: string[] = []
  const held: (() => void)[] = []
  const states = [...plan.states]
  const state = (): Said => (states.length > 1 ? states.shift() : states[0]) ?? { status: 'working' }
  const task = { taskId, status: 'working', ...dates, pollInterval: plan.pollInterval ?? 50 }
  const answer = (request: Request, response: ServerResponse): void => {
    const say = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: request.id, ...body }))
    }
    const said = (saying: Said): void => {
      if (saying === 'break') response.destroy()
      else if (saying === 'forget') response.writeHead(404).end()
      else if ('error' in saying) say({ error: { code: -32_602, message: saying.error } })
      else say({ result: { ...task, ...saying } })
    }
    switch (request.method) {
      case 'initialize':
        return say({ result: plan.hasTasks === false ? { ...hello, capabilities: { tools: {} } } : hello })
      case 'tools/list':
        return say({ result: { tools: [work] } })
      case 'tools/call':
        if (plan.created === 'never') return void held.push(() => say({ result: { task } }))
        return say({ result: plan.created ?? { task } })
      case 'tasks/get':
        return said(state())
      case 'tasks/cancel':
        return said({ status: 'cancelled' })
      case 'tasks/result':
        if (plan.result === 'never') return void held.push(() => say({ result: worked }))
        return typeof plan.result === 'string'
          ? said({ error: plan.result })
          : say({ result: plan.result ?? {} })
      default:
        return say({ error: { code: -32_601, message: 'Method not found' } })
    }
  }
  const listener = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (incoming.method !== 'POST') return void response.writeHead(405).end()
    const request = (await json(incoming)) as Request
    if (/^(?:tools\/call|tasks\/.*)$/.test(request.method)) asked.push(request.method)
    if (request.id === undefined) return void response.writeHead(202).end()
    answer(request, response)
  }
  const server = await served((request, response) => void listener(request, response))
  return Object.assign(server, { asked, release: () => held.splice(0).forEach((answer) => answer()) })
}

const hello = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
  serverInfo: { name: 'tasks', version: '1' },
}
const work = {
  name: 'work',
  description: 'Works.',
  inputSchema: { type: 'object' },
  execution: { taskSupport: 'required' },
}
