// For web pages: chats of the AI SDK over a server of runs.
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  type HttpChatTransportInitOptions,
  type ToolUIPart,
  type UIDataTypes,
  type UIMessage,
  type UIMessageChunk,
  type UITools,
} from 'ai'
import type { ResultPart } from '@tallystick/core/vocabulary'
import { stopRun, type StopOptions } from './stop-run.ts'

/** Options of the transport: those of the AI SDK's own, whose `api` is `/chat/AGENT`. */
export interface RunChatOptions<Message extends UIMessage>
  extends HttpChatTransportInitOptions<Message>, StopOptions {
  readonly api: string
  /**
   * When the model reads a message that is sent while a run is under way or waits for a person: with `steer` (the default) at
   * its next turn, with `queue` after its answer.
   */
  readonly whenBusy?: 'steer' | 'queue'
}

/** A page of a chat, oldest message first. */
export interface ChatPage<Message extends UIMessage> {
  readonly messages: Message[]
  /** The status of the last run, on the newest page: with `under_way`, `resumeStream` follows its answer. */
  readonly status?: 'under_way' | 'suspended' | 'interrupted' | 'done'
  readonly version?: string
  /** Pass it to get the messages before these; absent on the first page of the chat. */
  readonly before?: string
}

interface TypedTool {
  readonly name: string
  readonly '~input'?: unknown
}

/**
 * The tools of an agent as the AI SDK types them: the input of each as its model writes it, and its output as a page gets it, which is
 * a text unless the tool returned images or files. Tools whose name the compiler does not know are left out.
 */
export type InferUITools<Tools extends readonly TypedTool[]> = {
  [Tool in Tools[number] as string extends Tool['name'] ? never : Tool['name']]: {
    input: Exclude<Tool['~input'], undefined>
    output: string | readonly ResultPart[]
  }
}

/**
 * The messages of a chat whose agent has these tools, for `useChat` and `RunChatTransport`. `toolName` tells the calls of
 * one tool from those of others. The input of a call that ended in an error may be anything.
 *
 * ```ts
 * const tools = [pay, findBill]
 * export type CashierMessage = InferUIMessage<typeof tools>
 * // In the page: useChat<CashierMessage>({ transport: new RunChatTransport<CashierMessage>({ api: '/chat/cashier' }) })
 * if (part.type === 'dynamic-tool' && part.toolName === 'pay' && part.state === 'approval-requested') ask(part.input.usd)
 * ```
 */
export interface InferUIMessage<
  Tools extends readonly TypedTool[],
  Metadata = unknown,
  Data extends UIDataTypes = UIDataTypes,
> extends UIMessage<Metadata, Data> {
  parts: (
    | Exclude<UIMessage<Metadata, Data>['parts'][number], ToolUIPart | DynamicToolUIPart>
    | CallPart<InferUITools<Tools>>
  )[]
}

type CallPart<Tools extends UITools> = {
  [Name in keyof Tools & string]: DynamicToolUIPart & { toolName: Name } & (
      | { state: 'input-streaming' | 'output-error' }
      | ({
          state: Exclude<DynamicToolUIPart['state'], 'input-streaming' | 'output-error' | 'output-available'>
        } & Pick<Tools[Name], 'input'>)
      | ({ state: 'output-available' } & Tools[Name])
    )
}[keyof Tools & string]

type SendOptions<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['sendMessages']>[0]
type ReconnectOptions = Parameters<DefaultChatTransport<UIMessage>['reconnectToStream']>[0]
type Chunks = ReadableStream<UIMessageChunk>

/** The wait after a failed request, in milliseconds. */
const retryMs = 2_000

/**
 * Connects `useChat` with a server of runs. `stop()` of the chat cancels the run, by its id; a connection that is lost does not,
 * and `resumeStream` takes the run up again.
 *
 * ```ts
 * const transport = new RunChatTransport({ api: '/chat/cashier' })
 * const { messages, sendMessage, stop, setMessages, resumeStream } = useChat({ id, transport })
 * useEffect(() => transport.watch(id, ({ messages, status }) => {
 *   setMessages(messages)
 *   if (status === 'under_way') void resumeStream()
 * }), [])
 * ```
 */
export class RunChatTransport<Message extends UIMessage = UIMessage> extends DefaultChatTransport<Message> {
  readonly #whenBusy: RunChatOptions<Message>['whenBusy']
  readonly #stopping: StopOptions
  /** The streams that are read now, and who waits until none is. */
  readonly #reading = new Set<object>()
  #onIdle: (() => void)[] = []
  #reconnects = 0

  constructor({ whenBusy, onStopError, ...options }: RunChatOptions<Message>) {
    super(options)
    this.#whenBusy = whenBusy
    this.#stopping = { ...(onStopError && { onStopError }) }
  }

  override async sendMessages(options: SendOptions<Message>): Promise<Chunks> {
    const body = { ...(this.#whenBusy && { whenBusy: this.#whenBusy }), ...options.body }
    const open = (abortSignal: AbortSignal): Promise<Chunks> =>
      super.sendMessages({ ...options, body, abortSignal })
    return (await this.#read(options.chatId, options.abortSignal, open, async () => true)) as Chunks
  }

  override async reconnectToStream(options: ReconnectOptions): Promise<Chunks | null> {
    const number = ++this.#reconnects
    const open = (abortSignal: AbortSignal): Promise<Chunks | null> =>
      super.reconnectToStream({ ...options, abortSignal })
    // A chat also gives up a reconnect when it begins another one: the run goes on.
    const isStop = async (): Promise<boolean> => {
      await new Promise((resolve) => setTimeout(resolve))
      return number === this.#reconnects
    }
    return await this.#read(options.chatId, options.abortSignal, open, isStop)
  }

  /** Returns the newest messages of a chat, the user's included, or those before a place. A chat that has not begun has none. */
  async messages(chatId: string, { before }: { readonly before?: string } = {}): Promise<ChatPage<Message>> {
    const response = await this.#request(
      `/${encodeURIComponent(chatId)}${before === undefined ? '' : `?before=${before}`}`,
    )
    return (await response.json()) as ChatPage<Message>
  }

  /** Adds messages to the end of a chat, which may begin with them, as if they had been said. `watch` brings the chat as it is then. */
  async append(
    chatId: string,
    messages: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[],
  ): Promise<void> {
    const agent = decodeURIComponent(/\/chat\/([^/]+)\/?$/.exec(this.api)?.[1] ?? '')
    await this.#edit(chatId, 'messages', { messages, ...(agent && { agent }) })
  }

  /** Takes the last message of a chat back, a call together with its result. It stays on record. */
  async pop(chatId: string): Promise<void> {
    await this.#edit(chatId, 'pop', {})
  }

  /** Lets a chat begin anew. What was said stays on record. */
  async clear(chatId: string): Promise<void> {
    await this.#edit(chatId, 'clear', {})
  }

  /** Begins a chat under another id with the history of this one: as of its last answer, or of an event of one of its runs. */
  async branch(
    chatId: string,
    branchId: string,
    from: { readonly runId?: string; readonly atSeq?: number } = {},
  ): Promise<void> {
    await this.#edit(chatId, 'branch', { sessionId: branchId, ...from })
  }

  async #edit(chatId: string, verb: string, body: object): Promise<void> {
    // `api` is `/chat/AGENT`, and a chat is a session.
    const root = this.api.replace(/\/chat\/[^/]+\/?$/, '')
    const path = `${root}/sessions/${encodeURIComponent(chatId)}/${verb}`
    const response = await this.#sendTo(path, { method: 'POST', body: JSON.stringify(body) })
    if (!response.ok) throw new Error(await response.text())
  }

  /**
   * Calls back with the newest messages of a chat: at once, and whenever it has more that this page did not stream
   * itself, such as a decision or a message in another tab. Returns the function that ends it.
   */
  watch(chatId: string, onChange: (page: ChatPage<Message>) => void): () => void {
    const ended = new AbortController()
    void this.#watch(chatId, onChange, ended.signal)
    return () => ended.abort()
  }

  async #watch(
    chatId: string,
    onChange: (page: ChatPage<Message>) => void,
    signal: AbortSignal,
  ): Promise<void> {
    for (let version: string | undefined; !signal.aborted;) {
      if (this.#reading.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
      try {
        const query = version === undefined ? '' : `?version=${version}`
        const response = await this.#request(`/${encodeURIComponent(chatId)}${query}`, { signal })
        if (response.status === 204) continue
        const page = (await response.json()) as ChatPage<Message>
        // The answer is older than a stream that this page has begun since.
        if (this.#reading.size > 0 || signal.aborted) continue
        version = page.version ?? ''
        onChange(page)
      } catch {
        if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
  }

  /**
   * Records what the user says of a run that has ended: a score, a note, or both. `runId` is in the `metadata` of its message.
   * Rejects with the answer of a server that refuses it. The `api` of this transport has to end with `/chat/AGENT`.
   */
  async feedback(
    runId: string,
    feedback: { readonly score?: number; readonly note?: string },
  ): Promise<void> {
    const [chat = ''] = /\/chat\/[^/]+\/?$/.exec(this.api) ?? []
    if (chat === '')
      throw new Error(`The api of this transport is ${this.api}, and has to end with /chat/AGENT.`)
    const path = `${this.api.slice(0, -chat.length)}/runs/${encodeURIComponent(runId)}/feedback`
    const response = await this.#sendTo(path, { method: 'POST', body: JSON.stringify(feedback) })
    if (!response.ok) throw new Error(await response.text())
  }

  #end(reading: object): void {
    this.#reading.delete(reading)
    if (this.#reading.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Reads a stream. `isStop` says whether the abort of the signal is meant to stop the run. */
  async #read(
    chatId: string,
    signal: AbortSignal | undefined,
    open: (abortSignal: AbortSignal) => Promise<Chunks | null>,
    isStop: () => Promise<boolean>,
  ): Promise<Chunks | null> {
    const own = new AbortController()
    const opening = open(own.signal)
    const reading = {}
    this.#reading.add(reading)
    let runId: string | undefined
    const stop = async (): Promise<void> => {
      this.#end(reading)
      // A run that is on record can be stopped by its id: a request that was sent may begin one later.
      const stream = (await isStop()) ? await opening.catch(() => null) : null
      const path = `/${encodeURIComponent(chatId)}/stop`
      if (stream !== null) await stopRun((init) => this.#send(path, init), runId, this.#stopping)
      own.abort()
    }
    signal?.addEventListener('abort', () => void stop(), { once: true })
    try {
      const stream = await Promise.race([opening, rejectOnAbort(signal)])
      if (stream === null) this.#end(reading)
      return (
        stream &&
        watchStream(stream, {
          onChunk: (chunk) => {
            if (chunk.type === 'start') runId = Object(chunk.messageMetadata).runId ?? runId
          },
          onEnd: () => this.#end(reading),
        })
      )
    } catch (error) {
      this.#end(reading)
      throw error
    }
  }

  async #request(path: string, init?: RequestInit): Promise<Response> {
    const response = await this.#send(path, init)
    if (!response.ok) throw new Error(await response.text())
    return response
  }

  async #send(path: string, init: RequestInit = {}): Promise<Response> {
    return await this.#sendTo(`${this.api}${path}`, init)
  }

  async #sendTo(url: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(await resolveOption(this.headers))
    const credentials = await resolveOption(this.credentials)
    if (init.body !== undefined) headers.set('content-type', 'application/json')
    return await (this.fetch ?? globalThis.fetch)(url, {
      ...init,
      headers,
      ...(credentials && { credentials }),
    })
  }
}

/** The value of an option that may be a function, or a promise. */
async function resolveOption<Value>(
  given: Value | PromiseLike<Value> | (() => Value | PromiseLike<Value>),
): Promise<Value> {
  return await (typeof given === 'function' ? (given as () => Value | PromiseLike<Value>)() : given)
}

/** Rejects as `fetch` does when a signal is aborted. */
function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new DOMException('The chat was stopped.', 'AbortError'))
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** The same stream, and what it brings is told. */
function watchStream(
  stream: Chunks,
  { onChunk, onEnd }: { readonly onChunk: (chunk: UIMessageChunk) => void; readonly onEnd: () => void },
): Chunks {
  const reader = stream.getReader()
  return new ReadableStream<UIMessageChunk>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          onChunk(value)
          return controller.enqueue(value)
        }
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      onEnd()
    },
    async cancel(reason) {
      onEnd()
      await reader.cancel(reason)
    },
  })
}
