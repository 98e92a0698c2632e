import type { Client, ClientOptions } from '@modelcontextprotocol/client'
import type { client } from '../options/client-library.ts'
import type { McpQuestion } from '../options/hooks.ts'
import { type AskedQuestions, shownQuestion } from './asked-questions.ts'
import { rootUri } from '../options/server-options.ts'
import { negotiation } from './open-client.ts'
import type { NamedServer, SharedParts } from './shared-parts.ts'

/** What a new client tells its connection. */
export interface ClientEvents {
  /** The server's list of tools has changed, and this is all of it now; or it could not be read. */
  readonly onTools: (error: Error | null, tools: readonly client.Tool[] | null) => void
  /** What the server asks goes through these. */
  readonly questions: AskedQuestions
  /** A hook begins to answer a question of the server. Returns what is called when it has answered. */
  readonly onQuestion: () => () => void
}

/** Identifies this runtime to servers. */
const clientInfo = { name: 'tallystick', version: '0.1.0' }

/** Nothing is compiled from what a server says: its answers are read with bounds of our own. */
const trustingValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
}

/** Makes the client of a server, with the hooks that the user gave, and no other. */
export function newClient(
  { name, options }: NamedServer,
  { sdk, hooks, sampling }: Pick<SharedParts, 'sdk' | 'hooks' | 'sampling'>,
  events: ClientEvents,
  era?: 'legacy',
): Client {
  const { elicit, sample } = hooks
  const roots = options.roots?.flatMap((root) => rootUri(root) ?? [])
  const made = new sdk.Client(clientInfo, {
    versionNegotiation: era === undefined ? negotiation(options) : { mode: era },
    jsonSchemaValidator: trustingValidator,
    capabilities: {
      ...(elicit && { elicitation: { form: { applyDefaults: true }, url: {} } }),
      ...(sample && { sampling: {} }),
      ...(roots && { roots: {} }),
    },
    listChanged: { tools: { debounceMs: 50, onChanged: events.onTools } },
  })
  // A line that holds no message is no reason to end: servers print such things.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a client is no event target
  made.onerror = () => {}
  const asked = <Request, Answer>(
    kind: 'elicit' | 'sample',
    hook: (request: Request, question: McpQuestion) => Answer | Promise<Answer>,
    request: Request,
    signal: AbortSignal,
  ): Promise<Answer> =>
    events.questions.inTurn(kind, signal, () => {
      const shown = shownQuestion(request)
      return answered(() => hook(shown, Object.freeze({ server: name, signal })), events)
    })
  if (elicit) {
    made.setRequestHandler('elicitation/create', (request, { mcpReq }) =>
      asked<client.ElicitRequestParams, client.ElicitResult>('elicit', elicit, request.params, mcpReq.signal),
    )
  }
  if (roots) {
    made.setRequestHandler('roots/list', () => ({ roots: roots.map((uri) => ({ uri })) }))
  }
  if (sample) {
    made.setRequestHandler('sampling/createMessage', (request, { mcpReq }) =>
      asked<client.CreateMessageRequestParams, client.CreateMessageResult>(
        'sample',
        sample,
        { ...request.params, maxTokens: Math.min(request.params.maxTokens, sampling.maxTokens) },
        mcpReq.signal,
      ),
    )
  }
  return made
}

async function answered<Answer>(
  answer: () => Answer | Promise<Answer>,
  { onQuestion }: ClientEvents,
): Promise<Answer> {
  const onAnswer = onQuestion()
  try {
    return await answer()
  } catch {
    // What a hook throws is the application's own affair: the server only learns that there is no answer.
    throw new Error('The user of this client did not answer.')
  } finally {
    onAnswer()
  }
}
