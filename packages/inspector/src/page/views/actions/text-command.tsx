import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'

/** Asks for one text, and sends it. */
export function TextCommand({
  title,
  label,
  hint,
  action,
  mayBeEmpty = false,
  path,
  toBody,
  then,
  onClose,
}: {
  readonly title: string
  readonly label: string
  readonly hint: string
  readonly action: string
  readonly mayBeEmpty?: boolean
  readonly path: string
  readonly toBody: (text: string) => object
  /** Called with the answer of the server, before the dialog closes. */
  readonly then?: (answer: unknown) => void
  readonly onClose: () => void
}): JSX.Element {
  const [text, setText] = useState('')
  const { isBusy, trouble, send } = useSending()
  const submit = (): void =>
    send(
      () => source.value.send<unknown>(path, toBody(text)),
      (answer) => {
        then?.(answer)
        onClose()
      },
    )
  return (
    <Dialog title={title} onClose={onClose}>
      <Field label={label} hint={hint}>
        <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <DialogEnd
        trouble={trouble}
        action={action}
        disabled={isBusy || (text === '' && !mayBeEmpty)}
        onClick={submit}
      />
    </Dialog>
  )
}
