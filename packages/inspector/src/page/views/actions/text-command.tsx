import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { source } from '../../state/source.ts'
import { Dialog, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'
import { Trouble } from '../../ui/trouble.tsx'

/** Asks for one text, and sends it. */
export function TextCommand({
  title,
  label,
  hint,
  action,
  mayBeEmpty = false,
  path,
  toBody,
  onClose,
}: {
  readonly title: string
  readonly label: string
  readonly hint: string
  readonly action: string
  readonly mayBeEmpty?: boolean
  readonly path: string
  readonly toBody: (text: string) => object
  readonly onClose: () => void
}): JSX.Element {
  const [text, setText] = useState('')
  const { isBusy, trouble, send } = useSending()
  return (
    <Dialog title={title} onClose={onClose}>
      <Field label={label} hint={hint}>
        <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <Trouble words={trouble} />
      <footer class="dialog-end">
        <button
          type="button"
          class="primary"
          disabled={isBusy || (text === '' && !mayBeEmpty)}
          onClick={() => send(() => source.value.send(path, toBody(text)), onClose)}
        >
          {action}
        </button>
      </footer>
    </Dialog>
  )
}
