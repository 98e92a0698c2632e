import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { self } from '../state/runs.ts'
import { source } from '../state/source.ts'
import { formatCommand } from './command.ts'
import { showHidden } from './text.tsx'

/** What a view shows, in other forms. */
export interface SameThing {
  /** Words of the command line after `tallystick`; `LEDGER` stands for the ledger. */
  readonly command: readonly string[]
  /** The route of the server that answers with the same, relative to the page's. Absent if there is none. */
  readonly path?: string
  /** The value, or its JSON as text. */
  readonly json: () => unknown
  readonly markdown: () => string | Promise<string>
}

/** The command and the address that give what a view shows, and buttons that copy it. */
export function Same({ command, path, json, markdown }: SameThing): JSX.Element {
  const line = formatCommand(command, self.value?.title)
  const address =
    path === undefined || source.value.kind === 'file' ? undefined : new URL(path, location.href)
  return (
    <details class="same">
      <summary>The same elsewhere</summary>
      <div class="row">
        <code>{showHidden(line)}</code>
        <CopyButton label="Copy" of="the command" text={() => line} />
      </div>
      {address && (
        <div class="row">
          <code>GET {address.pathname + address.search}</code>
          <CopyButton label="Copy" of="the address" text={() => address.href} />
        </div>
      )}
      <div class="row">
        <span class="soft">This view as</span>
        <CopyButton label="JSON" text={async () => formatJson(await json())} />
        <CopyButton label="Markdown" text={markdown} />
        <CopyButton label="Link" text={() => location.href} />
      </div>
    </details>
  )
}

function formatJson(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
}

/** Said to screen readers when something was copied. */
const announced = signal('')

function CopyButton({
  label,
  of = label,
  text,
}: {
  readonly label: string
  /** What is copied, where the label does not say it. */
  readonly of?: string
  readonly text: () => string | Promise<string>
}): JSX.Element {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (outcome === undefined) return undefined
    const timer = setTimeout(() => setOutcome(undefined), 1_500)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async (): Promise<void> => {
    const isCopied = await Promise.resolve(text())
      .then((copied) => navigator.clipboard.writeText(copied))
      .then(
        () => true,
        () => false,
      )
    setOutcome(isCopied ? 'copied' : 'failed')
    announced.value = isCopied ? `Copied ${of}.` : `${of} could not be copied.`
  }
  return (
    <>
      <button type="button" class="quiet copy" aria-label={`Copy ${of}`} onClick={() => void copy()}>
        {outcome === undefined ? label : outcome === 'copied' ? '✓ copied' : 'not allowed'}
      </button>
      <span class="hidden-visually" role="status">
        {outcome === undefined ? '' : announced.value}
      </span>
    </>
  )
}
