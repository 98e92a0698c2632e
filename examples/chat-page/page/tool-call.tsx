import type { DynamicToolUIPart, ToolUIPart } from 'ai'
import type { ReactElement } from 'react'

/** Sends a decision, identified by the id of the question. */
export interface Answer {
  readonly id: string
  readonly approved: boolean
}

interface ToolCallProps {
  readonly name: string
  readonly part: ToolUIPart | DynamicToolUIPart
  readonly decide: (answer: Answer) => unknown
}

const said: Readonly<Record<string, string>> = {
  'input-streaming': 'is written',
  'input-available': 'runs',
  'approval-requested': 'waits for you',
  'approval-responded': 'is decided',
  'output-available': 'is done',
  'output-error': 'has failed',
  'output-denied': 'is denied',
}

/** One tool call: its input, state and result, and the question about it. */
export function ToolCall({ name, part, decide }: ToolCallProps): ReactElement {
  const { state } = part
  const answer = (approved: boolean) => () => void decide({ id: part.approval?.id ?? '', approved })
  return (
    <section className="call" aria-label={name} data-state={state}>
      <h2>
        {name} <small>{said[state] ?? state}</small>
      </h2>
      <pre>{JSON.stringify(part.input, null, 1)}</pre>
      {state === 'output-available' && <pre>{textOf(part.output)}</pre>}
      {state === 'output-error' && <pre>{part.errorText}</pre>}
      {state === 'approval-requested' && (
        <p>
          <button type="button" onClick={answer(true)}>
            Approve
          </button>
          <button type="button" onClick={answer(false)}>
            Deny
          </button>
        </p>
      )}
    </section>
  )
}

function textOf(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output, null, 1)
}
