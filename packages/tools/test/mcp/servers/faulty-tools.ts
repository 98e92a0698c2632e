// The tools of the servers of these tests: what goes wrong with servers, each on demand.
import { spawn } from 'node:child_process'
import { type CallToolResult, Server, type ServerContext, type Tool } from '@modelcontextprotocol/server'

const object = { type: 'object' as const }

const texts = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

/** What changes while a server runs. */
interface Shown {
  description: string
  readonly hidden: Set<string>
}

/** Writes to an output of the process of the server. */
type Write = (output: 'stdout' | 'stderr', text: string) => void

interface Served {
  readonly server: Server
  readonly write: Write
  readonly context: ServerContext
  readonly shown: Shown
  readonly input: Readonly<Record<string, unknown>>
}

type Answer = CallToolResult | Promise<CallToolResult>

/** What came along with the input. */
function metaOf({ mcpReq }: ServerContext): NonNullable<ServerContext['mcpReq']['_meta']> {
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's own name
  return mcpReq._meta ?? {}
}

const never = <T>(): Promise<T> => new Promise(() => {})

const answers: Readonly<Record<string, (served: Served) => Answer>> = {
  echo: ({ input }) => texts(String(input['text'])),
  /** What it was sent besides the input. */
  meta: ({ context }) => texts(JSON.stringify(metaOf(context))),
  env: () => texts(JSON.stringify(process.env)),
  pid: () => texts(String(process.pid)),
  /** A process of its own, which would outlive the server. */
  spawn: ({ input }) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
      detached: input['detached'] === true,
    })
    return texts(String(child.pid))
  },
  die: ({ write }) => {
    write('stderr', 'the disk is \u001b[31mfull\u001b[0m\n')
    process.kill(process.pid, 'SIGKILL')
    return never()
  },
  hang: async ({ context }) => {
    await context.mcpReq.notify({
      method: 'notifications/progress',
      params: { progressToken: metaOf(context).progressToken ?? 0, progress: 1, message: 'begun' },
    })
    return await never()
  },
  steps: async ({ context, input }) => {
    const progressToken = metaOf(context).progressToken
    if (progressToken === undefined) return texts('no token')
    for (let progress = 1; progress <= Number(input['count']); progress++) {
      await context.mcpReq.notify({
        method: 'notifications/progress',
        params: {
          progressToken,
          progress,
          total: Number(input['count']),
          message: typeof input['message'] === 'string' ? input['message'] : `step\u001b[2J ${progress}`,
        },
      })
    }
    return texts('all steps done')
  },
  huge: ({ input }) => texts('x'.repeat(Number(input['length']))),
  noisy: ({ write }) => {
    for (let line = 0; line < 2_000; line++) write('stderr', `line ${line} ${'-'.repeat(100)}\n`)
    write('stdout', 'this is not a message\n{"jsonrpc":"2.0"}\n')
    return texts('heard')
  },
  lie: () => ({ content: [{ type: 'text', text: 'warm' }], structuredContent: { degrees: 'warm' } }),
  unstructured: () => texts('no structure'),
  refuse: () => ({ isError: true, content: [{ type: 'text', text: 'The account is closed.' }] }),
  throw: () => {
    throw new Error('out of paper')
  },
  picture: () => ({
    content: [
      { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGVsbG8=', mimeType: 'audio/wav' },
      {
        type: 'resource_link',
        uri: 'file:///a.txt',
        name: 'a.txt',
        mimeType: 'text/plain',
        description: 'A file',
      },
      { type: 'resource', resource: { uri: 'file:///b.txt', text: 'the text of b' } },
    ],
  }),
  ask: async ({ context }) => {
    const answer = await context.mcpReq.elicitInput({
      message: 'How many?',
      requestedSchema: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] },
    })
    return texts(JSON.stringify(answer))
  },
  sample: async ({ context }) => {
    const answer = await context.mcpReq.requestSampling({
      messages: [{ role: 'user', content: { type: 'text', text: 'Capital of France?' } }],
      maxTokens: 10,
    })
    return texts(JSON.stringify(answer.content))
  },
  /** Changes what the list says of `echo`, and tells so. */
  change: async ({ server, shown, input }) => {
    shown.description = String(input['description'])
    await server.sendToolListChanged()
    return texts('changed')
  },
  /** Takes a tool off the list. */
  hide: async ({ server, shown, input }) => {
    shown.hidden.add(String(input['name']))
    await server.sendToolListChanged()
    return texts('hidden')
  },
  sum: ({ input }) => texts(String(Number(input['a']) + Number(input['b']))),
}

const number = { type: 'number' as const }

const described: Readonly<Record<string, Partial<Tool>>> = {
  echo: { inputSchema: { ...object, properties: { text: { type: 'string' } }, required: ['text'] } },
  lie: { outputSchema: { ...object, properties: { degrees: { type: 'number' } }, required: ['degrees'] } },
  unstructured: { outputSchema: { ...object, properties: { degrees: { type: 'number' } } } },
  sum: {
    inputSchema: {
      ...object,
      properties: {
        a: number,
        b: number,
        // Backtracks for ever on a text that does not fit.
        code: { type: 'string', pattern: '^(a+)+$' },
      },
      required: ['a', 'b'],
    },
    annotations: { readOnlyHint: true },
  },
  pid: { annotations: { readOnlyHint: true } },
}

function listed({ description, hidden }: Shown): readonly Tool[] {
  return Object.keys(answers)
    .filter((name) => !hidden.has(name))
    .map((name) => ({
      name,
      description: name === 'echo' ? description : `Does ${name}.`,
      inputSchema: object,
      ...described[name],
    }))
}

/** Makes a server of these tools, which lists two a page. One in the process of its test has no outputs to write to. */
export function faultyServer(write: Write = () => {}): Server {
  const shown: Shown = { description: 'Says it again.', hidden: new Set(['none']) }
  const server = new Server(
    { name: 'faulty\u001b[31m', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  )
  server.setRequestHandler('tools/list', ({ params }) => {
    const from = Number(params?.cursor ?? 0)
    const all = listed(shown)
    const more = from + 2 < all.length
    return { tools: all.slice(from, from + 2), ...(more && { nextCursor: String(from + 2) }) }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const answer = answers[params.name]
    if (answer === undefined || shown.hidden.has(params.name)) throw new Error(`no tool ${params.name}`)
    return await answer({ server, write, context, shown, input: params.arguments ?? {} })
  })
  return server
}
