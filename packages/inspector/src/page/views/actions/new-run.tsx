import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { go } from '../../state/route.ts'
import { self } from '../../state/runs.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'

/** Starts a run of one of the agents of the configuration, and shows it as it comes. */
export function NewRun({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const agents = self.value?.agents ?? []
  const [agent, setAgent] = useState(agents[0] ?? '')
  const [input, setInput] = useState('')
  const [sessionId, setSession] = useState('')
  const { isBusy, trouble, send } = useSending()
  const start = (): void =>
    send(
      () =>
        source.value.send<{ readonly runId: string }>('runs', {
          agent,
          input,
          ...(sessionId !== '' && { sessionId }),
        }),
      ({ runId: run }) => {
        onClose()
        go({ run, at: undefined, call: undefined, with: undefined })
      },
    )
  return (
    <Dialog title="New run" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          start()
        }}
      >
        <Field label="Agent">
          <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            {agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <Field label="Message">
          <textarea
            rows={4}
            autofocus
            value={input}
            onInput={(event) => setInput(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && input !== '') start()
            }}
          />
        </Field>
        <Field label="Session" hint="The conversation that it continues, if any.">
          <input value={sessionId} onInput={(event) => setSession(event.currentTarget.value)} />
        </Field>
        <DialogEnd
          trouble={trouble}
          action={isBusy ? 'Starting…' : 'Start'}
          disabled={isBusy || input === '' || agent === ''}
        />
      </form>
    </Dialog>
  )
}
