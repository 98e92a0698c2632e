import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Trouble } from './trouble.tsx'

/** A dialog over the page. Escape and a click beside it close it; the focus goes back to where it was. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** The end of a dialog: why it was refused, if it was, and its buttons; the main one sends its form, or calls `onClick`. */
export function DialogEnd({
  trouble,
  action,
  disabled,
  onClick,
  children,
}: {
  readonly trouble: string | undefined
  readonly action: string
  readonly disabled: boolean
  readonly onClick?: () => void
  /** The buttons before the main one. */
  readonly children?: ComponentChildren
}): JSX.Element {
  return (
    <>
      <Trouble words={trouble} />
      <footer class="dialog-end">
        {children}
        <button type={onClick ? 'button' : 'submit'} class="primary" disabled={disabled} onClick={onClick}>
          {action}
        </button>
      </footer>
    </>
  )
}

/** A field of a form under its label. */
export function Field({
  label,
  hint,
  children,
}: {
  readonly label: string
  readonly hint?: string
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <label class="field">
      <span class="label">{label}</span>
      {children}
      {hint !== undefined && <span class="soft hint">{hint}</span>}
    </label>
  )
}
