// How the page takes a run up again that answers its last message.
import { DefaultChatTransport, type HttpChatTransportInitOptions, type UIMessage } from 'ai'
import { keptMessages } from './kept.ts'

interface Options extends HttpChatTransportInitOptions<UIMessage> {
  /** Called when the page begins to ask for the run, and when the server has answered. */
  readonly onAsking: (isAsking: boolean) => void
}

type Reconnect = DefaultChatTransport<UIMessage>['reconnectToStream']

/** Takes up a run that is under way, and one that has ended since the page showed a part of its answer. */
export class RunTransport extends DefaultChatTransport<UIMessage> {
  readonly #onAsking: Options['onAsking']

  constructor({ onAsking, ...options }: Options) {
    super(options)
    this.#onAsking = onAsking
  }

  override async reconnectToStream(options: Parameters<Reconnect>[0]): ReturnType<Reconnect> {
    this.#onAsking(true)
    try {
      return (await super.reconnectToStream(options)) ?? (await this.#missedEnd(options))
    } finally {
      this.#onAsking(false)
    }
  }

  /** Returns the whole answer to the last message if the tab kept only a part: a message that is sent again starts no second run. */
  async #missedEnd(options: Parameters<Reconnect>[0]): ReturnType<Reconnect> {
    const messages = messagesToAnswer(keptMessages())
    if (messages.length === 0) return null
    const { abortSignal } = options
    return await this.sendMessages({ ...options, ...submitted, abortSignal, messages })
  }
}

const submitted = { trigger: 'submit-message', messageId: undefined } as const

/** Returns the messages up to the last one of the user if its answer is not whole: with its end, an answer gets a reason. */
function messagesToAnswer(messages: UIMessage[]): UIMessage[] {
  const { metadata } = messages.at(-1) ?? {}
  const isWhole = (metadata as { readonly reason?: string } | undefined)?.reason !== undefined
  return isWhole ? [] : messages.slice(0, messages.findLastIndex(({ role }) => role === 'user') + 1)
}
