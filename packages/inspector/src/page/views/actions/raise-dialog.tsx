import { readDecimal } from '@tallystick/core/internal'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { runId } from '../../state/route.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'

/** Raises the limit that a run has met. */
export function RaiseDialog({
  limit: { limit, max },
  onClose,
}: {
  readonly limit: { readonly limit: string; readonly max?: number }
  readonly onClose: () => void
}): JSX.Element {
  const [text, setText] = useState(max === undefined ? '' : String(max * 2))
  const { isBusy, trouble, send } = useSending()
  const next = readDecimal(text.trim())
  const isHigher = next > (max ?? 0)
  return (
    <Dialog title={`Raise ${limit}`} onClose={onClose}>
      <Field label="New maximum" hint={max === undefined ? '' : `It is ${max} now.`}>
        <input inputMode="decimal" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <DialogEnd
        trouble={trouble}
        action="Raise"
        disabled={isBusy || !isHigher}
        onClick={() =>
          send(() => source.value.send(`runs/${runId.value}/raise`, { limit, max: next }), onClose)
        }
      />
    </Dialog>
  )
}
