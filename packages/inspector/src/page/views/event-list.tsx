import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import { goTo, lastSeq, lines, restingSeq } from '../state/open-run.ts'
import { runId } from '../state/route.ts'
import { Same } from '../ui/same.tsx'
import { showHidden } from '../ui/text.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import type { EventLine } from '../worker/moment.ts'

/** All events of the run, one line each. */
export function EventList(): JSX.Element {
  const now = restingSeq.value
  return (
    <div class="filled">
      <VirtualList
        items={lines}
        count={lastSeq.value}
        rowHeight={24}
        name="events"
        now={now - 1}
        keyOf={({ seq }) => seq}
      >
        {(line) => <Entry line={line} isNow={line.seq === now} />}
      </VirtualList>
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--events']}
        path={`runs/${runId.value}/events`}
        json={() => lines}
        markdown={() => lines.map(({ seq: at, type, label }) => `${at}. ${type} ${label}`).join('\n')}
      />
    </div>
  )
}

interface EntryProps {
  readonly line: EventLine
  readonly isNow: boolean
}

/** An event. Its line never changes, so it is drawn again only when it is, or was, the one that is looked at. */
const Entry = memo(EntryButton)

function EntryButton({ line: { seq: of, turn, type, label, isRemoved }, isNow }: EntryProps): JSX.Element {
  return (
    <button type="button" class="line" aria-current={isNow} onClick={() => goTo(of)}>
      <span class="num soft">{of}</span>
      <span class="soft">t{turn}</span>
      <span>{type}</span>
      <span class="soft">{isRemoved ? 'content removed' : showHidden(label)}</span>
    </button>
  )
}
