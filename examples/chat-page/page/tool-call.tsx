import type { DynamicToolUIPart, ToolUIPart } from 'ai'
import type { ReactElement } from 'react'

interface ToolCallProps {
  readonly name: string
  readonly part: ToolUIPart | DynamicToolUIPart
  readonly decide: (answer: { readonly id: string; readonly approved: boolean }) => unknown
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

/** One call of a tool: what it is given, how it is, what came back, and the question about it. */
export function ToolCall({ name, part, decide }: ToolCallProps): ReactElement {
  const { state } = part
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
          <button type="button" onClick={() => void decide({ id: part.approval.id, approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => void decide({ id: part.approval.id, approved: false })}>
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
