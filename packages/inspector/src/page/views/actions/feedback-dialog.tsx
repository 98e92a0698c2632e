import { readDecimal } from '@tallystick/core/internal'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { worker } from '../../state/open-run.ts'
import { go, runId } from '../../state/route.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'

/** Says how a run came out: a score, a note, or both. Then the page goes to its end, where feedback is shown. */
export function FeedbackDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [score, setScore] = useState('')
  const [note, setNote] = useState('')
  const { isBusy, trouble, send } = useSending()
  const value = readDecimal(score.trim())
  const isNumber = score.trim() === '' || !Number.isNaN(value)
  const body = { ...(score.trim() !== '' && { score: value }), ...(note.trim() !== '' && { note }) }
  const give = (): void =>
    send(
      () => source.value.send(`runs/${runId.value}/feedback`, body),
      () => {
        void worker.readOn()
        go({ at: undefined })
        onClose()
      },
    )
  return (
    <Dialog title="Feedback on the run" onClose={onClose}>
      <Field
        label="Score"
        hint={isNumber ? 'Any number, such as 1 for right and 0 for wrong.' : 'No number.'}
      >
        <input
          inputMode="decimal"
          value={score}
          aria-invalid={!isNumber}
          onInput={(event) => setScore(event.currentTarget.value)}
        />
      </Field>
      <Field label="Note" hint="It stays on the record of the run, under your name. No model reads it.">
        <textarea rows={3} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      </Field>
      <DialogEnd
        trouble={trouble}
        action="Give feedback"
        disabled={isBusy || !isNumber || Object.keys(body).length === 0}
        onClick={give}
      />
    </Dialog>
  )
}
