import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Choice, collectCases, maxCases } from '../../state/cases.ts'
import { formatListPath } from '../../data/server-source.ts'
import { formatConditions } from '../../ui/command.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { fence } from '../../ui/fence.ts'
import { Same } from '../../ui/same.tsx'
import { useSending } from '../../ui/sending.ts'
import { LongText, showHidden } from '../../ui/text.tsx'
import { Trouble } from '../../ui/trouble.tsx'

interface Collected {
  /** A case as JSON each. */
  readonly lines: readonly string[]
  /** How many runs make none, by the reason. */
  readonly leftOut: ReadonlyMap<string, number>
}

/** Makes cases of runs, for `tallystick evaluate`, and offers them as a file. */
export function DatasetDialog({
  choice,
  onClose,
}: {
  readonly choice: Choice
  readonly onClose: () => void
}): JSX.Element {
  const [{ lines, leftOut }, setCollected] = useState<Collected>({ lines: [], leftOut: new Map() })
  const { isBusy, trouble, send } = useSending()
  useEffect(() => {
    const found: string[] = []
    const left = new Map<string, number>()
    let isClosed = false
    const isEnough = (): boolean => isClosed || found.length >= maxCases
    send(
      () =>
        collectCases(
          choice,
          (page) => {
            found.push(...page.cases.map((each) => JSON.stringify(each)))
            for (const { reason } of page.leftOut) left.set(reason, (left.get(reason) ?? 0) + 1)
            if (!isClosed) setCollected({ lines: [...found], leftOut: new Map(left) })
          },
          isEnough,
        ),
      () => undefined,
    )
    return () => {
      isClosed = true
    }
  }, [])
  const text = (): string => lines.map((line) => `${line}\n`).join('')
  const first = useMemo(() => lines[0] && JSON.stringify(JSON.parse(lines[0]), undefined, 2), [lines[0]])
  return (
    <Dialog title="Cases for an evaluation" onClose={onClose}>
      <p role="status">
        {count(lines.length, 'case')}
        {isBusy ? ' so far …' : '.'}
        {[...leftOut].map(([reason, runs]) => ` ${count(runs, 'run')} left out: ${showHidden(reason)}.`)}
        {lines.length >= maxCases && ' There may be more: the command below has no end.'}
      </p>
      <Trouble words={trouble} />
      {first !== undefined && (
        <div class="input" tabIndex={0} role="region" aria-label="The first case">
          <LongText text={first} />
        </div>
      )}
      <p class="soft hint">
        Each line of the file is a case: what the user said, the results of the tools, and the answer as what
        is expected. What looks like a secret is masked. Read it before you commit it: it is what your users
        said.
      </p>
      <footer class="dialog-end">
        <button
          type="button"
          disabled={isBusy || lines.length === 0}
          onClick={() => void navigator.clipboard.writeText(text())}
        >
          Copy
        </button>
        <button
          type="button"
          class="primary"
          disabled={isBusy || lines.length === 0}
          onClick={() => save('cases.jsonl', text())}
        >
          Save cases.jsonl
        </button>
      </footer>
      <Same
        command={['dataset', 'LEDGER', ...(choice.run ? ['--run', ...choice.run] : formatConditions(choice))]}
        path={formatListPath(choice, 'dataset')}
        json={() => lines.map((line) => JSON.parse(line) as unknown)}
        markdown={() => fence(text())}
      />
    </Dialog>
  )
}

function count(number: number, thing: string): string {
  return `${number.toLocaleString('en')} ${thing}${number === 1 ? '' : 's'}`
}

function save(name: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/jsonl' }))
  link.download = name
  link.click()
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
