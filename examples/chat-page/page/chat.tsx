import { useChat } from '@ai-sdk/react'
import {
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { StrictMode, useEffect, useState, type FormEvent, type ReactElement } from 'react'
import { createRoot } from 'react-dom/client'
import { chatId, keepMessages, keptMessages, token } from './kept.ts'
import { RunTransport } from './run-transport.ts'
import { ToolCall } from './tool-call.tsx'

interface Options {
  readonly agent: string
  readonly title: string
  readonly note: string
  readonly question: string
}

const options = JSON.parse(document.getElementById('options')?.textContent ?? '{}') as Options

function Chat(): ReactElement {
  // The page begins by asking for a run that is under way.
  const [isAsking, setIsAsking] = useState(true)
  const [transport] = useState(
    () =>
      new RunTransport({
        api: `/chat/${encodeURIComponent(options.agent)}`,
        headers: { authorization: `Bearer ${token}` },
        onAsking: setIsAsking,
      }),
  )
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
  // Until the run is shown anew, the page shows what it kept: the replay of the run would undo an answer to that.
  const isOutdated = isAsking || status === 'submitted'
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() === '' || isBusy || isAsking) return
    void sendMessage({ text })
    setText('')
  }
  return (
    <>
      <header>
        <h1>{options.title}</h1>
        <p>{options.note}</p>
      </header>
      <ol aria-live="polite" aria-busy={isBusy || isAsking}>
        {messages.map((message) => (
          <Message
            key={message.id}
            message={message}
            isOutdated={isOutdated}
            decide={addToolApprovalResponse}
          />
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
          <button type="submit" disabled={isAsking}>
            Send
          </button>
        )}
      </form>
    </>
  )
}

type Decide = ReturnType<typeof useChat>['addToolApprovalResponse']

interface MessageProps {
  readonly message: UIMessage
  readonly isOutdated: boolean
  readonly decide: Decide
}

function Message({ message, isOutdated, decide }: MessageProps): ReactElement {
  return (
    <li className={message.role}>
      {message.parts.map((part, index) => {
        if (part.type === 'text') return <p key={index}>{part.text}</p>
        if (!isToolUIPart(part)) return null
        const call = { name: getToolName(part), part, isOutdated, decide }
        return <ToolCall key={part.toolCallId} {...call} />
      })}
    </li>
  )
}

createRoot(document.getElementById('chat') as HTMLElement).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
)
