import { AbstractChat, type ChatState, type ChatStatus, type ChatTransport, type UIMessage } from 'ai'
import { RunChatTransport, type RunChatOptions } from '@tallystick/server/client'
import type { Office } from './office.ts'

/** What a chat of a page keeps. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined
  messages: UIMessage[]
  constructor(messages: UIMessage[] = []) {
    this.messages = messages
  }
  pushMessage = (message: UIMessage): void => void this.messages.push(structuredClone(message))
  popMessage = (): void => void this.messages.pop()
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages[index] = structuredClone(message)
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

/** A chat as `useChat` keeps it. */
export class PageChat extends AbstractChat<UIMessage> {
  constructor(id: string, transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) {
    super({ id, transport, state: new PlainState(messages) })
  }
}

/** The transport of a page for an agent. */
export function transportOf(
  office: Office,
  agent: string,
  { as = 'ada', ...options }: Partial<RunChatOptions<UIMessage>> & { readonly as?: string } = {},
): RunChatTransport {
  return new RunChatTransport({
    api: `${office.listening.url}/chat/${agent}`,
    headers: { authorization: `Bearer ${as}` },
    ...options,
  })
}

/** The text of a message. */
export const textIn = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|')

/** The question of a message. */
export function questionIn(message: UIMessage | undefined): string {
  const part = message?.parts.find(
    (each) => each.type === 'dynamic-tool' && each.state === 'approval-requested',
  )
  return part?.type === 'dynamic-tool' ? (part.approval?.id ?? '') : ''
}
