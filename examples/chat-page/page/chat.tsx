import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { StrictMode, useEffect, useState, type FormEvent, type ReactElement } from 'react'
import { createRoot } from 'react-dom/client'
import { chatId, keepMessages, keptMessages, token } from './kept.ts'
import { ToolCall } from './tool-call.tsx'

interface Options {
  readonly agent: string
  readonly title: string
  readonly note: string
  readonly question: string
}

const options = JSON.parse(document.getElementById('options')?.textContent ?? '{}') as Options

const transport = new DefaultChatTransport({
  api: `/chat/${encodeURIComponent(options.agent)}`,
  headers: { authorization: `Bearer ${token}` },
})

function Chat(): ReactElement {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    id: chatId,
    messages: keptMessages(),
    // A page that is loaded anew takes a run up that is under way.
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  useEffect(() => keepMessages(messages), [messages])
  const [text, setText] = useState(messages.length === 0 ? options.question : '')
  const isBusy = status === 'submitted' || status === 'streaming'
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() === '' || isBusy) return
    void sendMessage({ text })
    setText('')
  }
  return (
    <>
      <header>
        <h1>{options.title}</h1>
        <p>{options.note}</p>
      </header>
      <ol aria-live="polite" aria-busy={isBusy}>
        {messages.map((message) => (
          <Message key={message.id} message={message} decide={addToolApprovalResponse} />
        ))}
      </ol>
      {error !== undefined && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <textarea
          aria-label="Message"
          rows={3}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        {isBusy ? (
          <button type="button" onClick={() => void stop()}>
            Stop reading
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
      </form>
    </>
  )
}

type Decide = ReturnType<typeof useChat>['addToolApprovalResponse']

function Message({ message, decide }: { message: UIMessage; decide: Decide }): ReactElement {
  return (
    <li className={message.role}>
      {message.parts.map((part, index) => {
        if (part.type === 'text') return <p key={index}>{part.text}</p>
        if (!isToolUIPart(part)) return null
        return <ToolCall key={part.toolCallId} name={getToolName(part)} part={part} decide={decide} />
      })}
    </li>
  )
}

createRoot(document.getElementById('chat') as HTMLElement).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
)
