import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { runId } from '../../state/route.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'
import type { DeferredWork } from '../../worker/waits.ts'

/** Gives the result of a call that an outside system carries out. */
export function SettleDialog({
  call: { toolCallId, name },
  onClose,
}: {
  readonly call: DeferredWork
  readonly onClose: () => void
}): JSX.Element {
  const [text, setText] = useState('')
  const { isBusy, trouble, send } = useSending()
  const settle = (field: 'result' | 'failed'): void =>
    send(() => source.value.send(`runs/${runId.value}/settle`, { toolCallId, [field]: text }), onClose)
  return (
    <Dialog title={`Settle ${name}`} onClose={onClose}>
      <Field label="Result, or the error" hint="The model reads it as it is.">
        <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <DialogEnd
        trouble={trouble}
        action="It is done"
        disabled={isBusy || text === ''}
        onClick={() => settle('result')}
      >
        <button type="button" disabled={isBusy || text === ''} onClick={() => settle('failed')}>
          It failed
        </button>
      </DialogEnd>
    </Dialog>
  )
}
