import { useChat } from '@ai-sdk/react'
import { RunChatTransport } from '@tallystick/server/client'
import { getToolName, isToolUIPart, type UIMessage } from 'ai'
import { StrictMode, useEffect, useState, type FormEvent, type ReactElement } from 'react'
import { createRoot } from 'react-dom/client'
import { chatId, token } from './kept.ts'
import { ToolCall, type Answer } from './tool-call.tsx'

interface Options {
  readonly agent: string
  readonly title: string
  readonly note: string
  readonly question: string
}

const options = JSON.parse(document.getElementById('options')?.textContent ?? '{}') as Options
let showStopError: (error: Error) => void = () => {}
const transport = new RunChatTransport({
  api: `/chat/${encodeURIComponent(options.agent)}`,
  headers: { authorization: `Bearer ${token}` },
  onStopError: (error) => showStopError(error),
})

function Chat(): ReactElement {
  const { messages, status, error, sendMessage, regenerate, stop, setMessages, resumeStream, ...chat } =
    useChat({ id: chatId, transport })
  const [isLoading, setIsLoading] = useState(true)
  const [text, setText] = useState('')
  const [edited, setEdited] = useState<string>()
  const [stopError, setStopError] = useState<Error>()
  useEffect(() => {
    showStopError = setStopError
  }, [])
  // Loads the chat from the server at the start, and whenever another tab has changed it.
  useEffect(
    () =>
      transport.watch(chatId, (page) => {
        setMessages(page.messages)
        setIsLoading((isFirst) => {
          if (isFirst && page.messages.length === 0) setText(options.question)
          return false
        })
        if (page.status === 'under_way') void resumeStream()
      }),
    [setMessages, resumeStream],
  )
  const isBusy = status === 'submitted' || status === 'streaming'
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() === '' || isLoading) return
    void sendMessage(edited === undefined ? { text } : { text, messageId: edited })
    setEdited(undefined)
    setStopError(undefined)
    setText('')
  }
  const decide = async (answer: Answer): Promise<void> => {
    await chat.addToolApprovalResponse(answer)
    await sendMessage()
  }
  const edit = (message: UIMessage): void => {
    setEdited(message.id)
    setText(message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n'))
  }
  return (
    <>
      <header>
        <h1>{options.title}</h1>
        <p>{options.note}</p>
      </header>
      <ol aria-live="polite" aria-busy={isBusy || isLoading}>
        {messages.map((message) => (
          <Message
            key={message.id}
            {...{ message, decide, edit }}
            again={() => void regenerate({ messageId: message.id })}
          />
        ))}
      </ol>
      {error !== undefined && <p role="alert">{detailOf(error)}</p>}
      {stopError !== undefined && <p role="alert">{stopError.message}</p>}
      <form onSubmit={send}>
        <textarea
          aria-label={edited === undefined ? 'Message' : 'Edited message'}
          rows={3}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <button type="submit" disabled={isLoading}>
          Send
        </button>
        {isBusy && (
          <button type="button" onClick={() => void stop()}>
            Stop
          </button>
        )}
      </form>
    </>
  )
}

interface MessageProps {
  readonly message: UIMessage
  readonly decide: (answer: Answer) => Promise<void>
  readonly edit: (message: UIMessage) => void
  readonly again: () => void
}

function Message({ message, decide, edit, again }: MessageProps): ReactElement {
  const { isWaiting, isUnanswered } = Object(message.metadata) as Record<string, unknown>
  return (
    <li className={message.role}>
      {message.parts.map((part, index) => {
        if (part.type === 'text') return <p key={index}>{part.text}</p>
        if (!isToolUIPart(part)) return null
        return <ToolCall key={part.toolCallId} name={getToolName(part)} {...{ part, decide }} />
      })}
      {isWaiting === true && <small>waits for its turn</small>}
      {isUnanswered === true && <small>was not answered</small>}
      {message.role === 'user' ? (
        <button type="button" className="quiet" onClick={() => edit(message)}>
          Edit
        </button>
      ) : (
        <button type="button" className="quiet" onClick={again}>
          Answer again
        </button>
      )}
    </li>
  )
}

/** Returns the detail of a problem that the server sent, or the error itself. */
function detailOf({ message }: Error): string {
  try {
    return (JSON.parse(message) as { readonly detail?: string }).detail ?? message
  } catch {
    return message
  }
}

createRoot(document.getElementById('chat') as HTMLElement).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
)
