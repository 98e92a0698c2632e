import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import { useEffect, useState } from 'preact/hooks'
import { worker } from '../state/open-run.ts'
import type { Change, ValueNode } from '../worker/values.ts'
import { showHidden } from './text.tsx'

interface Place {
  readonly root: 'state' | 'event'
  readonly seq: number
}

interface TreeProps extends Place {
  readonly changed: readonly Change[]
}

/**
 * The state after an event, or an event, as a tree. Changed places are marked; entries are read when they are opened. It is drawn
 * again only when what it is given changes.
 */
export const ValueTree = memo(Tree)

function Tree({ root, seq, changed }: TreeProps): JSX.Element {
  const marks = new Set(
    changed.flatMap(({ path }) => path.map((_, end) => JSON.stringify(path.slice(0, end + 1)))),
  )
  return (
    <ul class="tree">
      <Entries place={{ root, seq }} path={[]} marks={marks} />
    </ul>
  )
}

function Entries({
  place,
  path,
  marks,
}: {
  readonly place: Place
  readonly path: readonly string[]
  readonly marks: ReadonlySet<string>
}): JSX.Element {
  const [nodes, setNodes] = useState<readonly ValueNode[]>([])
  const key = JSON.stringify([place, path])
  useEffect(() => {
    let isGone = false
    void worker.readChildren(place.root, place.seq, path).then((read) => {
      if (!isGone) setNodes(read)
    })
    return () => {
      isGone = true
    }
  }, [key])
  return (
    <>
      {nodes.map((node) => (
        <Entry key={node.key} node={node} place={place} path={[...path, node.key]} marks={marks} />
      ))}
    </>
  )
}

function Entry({
  node,
  place,
  path,
  marks,
}: {
  readonly node: ValueNode
  readonly place: Place
  readonly path: readonly string[]
  readonly marks: ReadonlySet<string>
}): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const isChanged = marks.has(JSON.stringify(path))
  const { key, type, preview, size } = node
  if (type !== 'object' && type !== 'array') {
    const cut = type === 'string' && size > preview.length ? '…' : ''
    return (
      <li class={isChanged ? 'changed' : ''}>
        <div class="entry">
          <span class="key">{showHidden(key)}</span>
          <span class={type}>{type === 'string' ? JSON.stringify(showHidden(preview)) + cut : preview}</span>
        </div>
      </li>
    )
  }
  return (
    <li class={isChanged ? 'changed' : ''}>
      <button
        class="entry"
        type="button"
        aria-expanded={isOpen}
        disabled={size === 0}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="key">
          {isOpen ? '▾' : '▸'} {showHidden(key)}
        </span>
        <span class="faint">{showHidden(preview)}</span>
      </button>
      {isOpen && (
        <ul>
          <Entries place={place} path={path} marks={marks} />
        </ul>
      )}
    </li>
  )
}
