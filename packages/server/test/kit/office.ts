import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
  type Runtime,
} from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { onTestFinished } from 'vitest'
import { createServer, type Principal, type Server, type ServerOptions } from '@tallystick/server'
import { serve, type Listening, type ServeOptions } from '@tallystick/server/node'
import { payingAgent } from './paying-agent.ts'

export { payingAgent }

/** An agent that answers with these texts, a reply each. */
export function tellingAgent(name: string, ...texts: readonly string[]): Agent {
  const model = scriptedModel(texts.map((text) => ({ text })))
  return defineAgent({ name, instructions: 'Answer.', model })
}

/** Who may do what in these tests, by the token of their requests. */
const principals: Readonly<Record<string, Principal>> = {
  ada: { name: 'ada', sees: { subjects: ['ada'] } },
  bob: { name: 'bob', sees: { subjects: ['bob'] } },
  viewer: { name: 'viewer', sees: 'everything', may: [] },
  boss: { name: 'boss', sees: 'everything' },
  driver: { name: 'driver', sees: 'everything', may: ['drive'] },
}

/** A server on a free port, with what a client of it needs. */
export interface Office {
  readonly ledger: Ledger
  readonly runtime: Runtime
  readonly server: Server
  readonly listening: Listening
  /** What the server reported as its own faults. */
  readonly reported: unknown[]
  /** Sends a request as a principal; a body makes it a POST. */
  send(
    path: string,
    as?: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Response>
  /** Starts a run of the first agent about the principal, and answers its id. */
  start(as: string, body?: object): Promise<string>
}

/** What differs from the usual office. */
export interface OfficeOptions extends Partial<Omit<ServerOptions, 'runtime'>> {
  readonly serve?: ServeOptions
}

/** Opens a server for one test. */
export async function openOffice(options: OfficeOptions = {}): Promise<Office> {
  const { ledger = memoryLedger(), agents = [payingAgent()], serve: where, ...others } = options
  const reported: unknown[] = []
  const runtime = createRuntime({ ledger, agents })
  const server = createServer({
    runtime,
    ledger,
    agents,
    authorize: (request) => principals[request.headers.get('authorization')?.slice('Bearer '.length) ?? ''],
    report: (error) => reported.push(error),
    ...others,
  })
  const listening = await serve(server, where)
  onTestFinished(async () => {
    await listening.close(0)
  })
  const send: Office['send'] = (path, as = 'boss', body, headers = {}) =>
    fetch(`${listening.url}${path}`, {
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', ...headers },
    })
  return {
    ledger,
    runtime,
    server,
    listening,
    reported,
    send,
    async start(as, body = {}) {
      const [agent] = agents
      const response = await send('/runs', as, { agent: agent?.name, input: 'Pay the bill.', ...body })
      const { runId } = (await response.json()) as { runId: string }
      return runId
    },
  }
}

/** The frames of a stream of server-sent events, as they arrive. */
export async function* framesOf(
  response: Response,
): AsyncGenerator<{ readonly id: string | undefined; readonly data: string }> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const lines = frame.split('\n')
      const data = lines.flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))
      const id = lines.find((line) => line.startsWith('id: '))?.slice(4)
      if (data.length > 0) yield { id, data: data.join('\n') }
    }
  }
}

/** The JSON of a response, with its status. */
export async function answerOf(
  response: Response,
): Promise<{ readonly status: number; readonly [field: string]: unknown }> {
  return { ...((await response.json()) as object), status: response.status }
}
