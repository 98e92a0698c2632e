import type { JSX } from 'preact'
import type { Grant } from '@tallystick/core/vocabulary'
import type { RowStatus, RunNode } from '../../../api.ts'
import { tree } from '../../state/money.ts'
import { goTo } from '../../state/open-run.ts'
import { go } from '../../state/route.ts'
import { StatusSign } from '../../ui/status.tsx'
import { formatCost, showHidden } from '../../ui/text.tsx'
import type { ChildGrant } from '../../worker/money.ts'
import { describeGrant, formatTokens } from './amounts.ts'
import { Estimate } from './estimate.tsx'

/** What each child run was granted, and what it used of it, with the child runs below it. */
export function ChildGrants({ grants }: { readonly grants: readonly ChildGrant[] }): JSX.Element {
  const nodes = new Map<string, RunNode>(tree.value?.children.map((node) => [node.runId, node]))
  return (
    <div class="section">
      <h3>Granted to child runs</h3>
      <ul class="grants">
        {grants.map(({ childRunId, name, seq, grant, spent }) => {
          const node = nodes.get(childRunId)
          return (
            <li key={childRunId}>
              <GrantLine
                runId={childRunId}
                name={node?.agent ?? name}
                status={node?.status}
                grant={grant}
                tokens={spent?.tokens ?? node?.tokens}
                costUsd={spent?.costUsd ?? node?.costUsd}
                isEstimated={spent?.isEstimated ?? false}
                seq={seq}
              />
              <Below nodes={node?.children ?? []} depth={1} />
            </li>
          )
        })}
      </ul>
    </div>
  )
}

interface GrantLineProps {
  readonly runId: string
  readonly name: string
  readonly status: RowStatus | undefined
  readonly grant: Grant
  readonly tokens: number | undefined
  readonly costUsd: number | undefined
  readonly isEstimated?: boolean
  /** The event of the open run that started it. */
  readonly seq?: number
}

function GrantLine(props: GrantLineProps): JSX.Element {
  const { runId, name, status, grant, tokens, costUsd, isEstimated = false, seq } = props
  const part = readPart(grant, tokens, costUsd)
  const isOver = part !== undefined && part > 1
  return (
    <div class="grant">
      {status ? <StatusSign status={status} /> : <span />}
      <button type="button" class="quiet" onClick={() => go({ run: runId, at: undefined, call: undefined })}>
        {showHidden(name)}
      </button>
      {seq === undefined ? (
        <span />
      ) : (
        <button type="button" class="quiet soft" title="Go to its start" onClick={() => goTo(seq)}>
          {seq}
        </button>
      )}
      <span
        class={isOver ? 'meter full' : 'meter'}
        role="img"
        aria-label={part === undefined ? 'no bound' : `${Math.round(part * 100)}% of its grant`}
      >
        <span class="spent" style={{ width: `${Math.min(100, (part ?? 0) * 100)}%` }} />
      </span>
      <span class="num">
        {isEstimated && <Estimate why="Its parent counted before it had ended" />}
        {costUsd === undefined
          ? tokens === undefined
            ? 'under way'
            : `${formatTokens(tokens)} tokens`
          : formatCost(costUsd)}
        {isOver && <b class="bad"> over</b>}
      </span>
      <span class="soft of">of {describeGrant(grant)}</span>
    </div>
  )
}

function readPart(
  grant: ChildGrant['grant'],
  tokens: number | undefined,
  costUsd: number | undefined,
): number | undefined {
  if (grant.costUsd !== undefined && costUsd !== undefined && grant.costUsd > 0)
    return costUsd / grant.costUsd
  if (grant.tokens !== undefined && tokens !== undefined && grant.tokens > 0) return tokens / grant.tokens
  return undefined
}

/** Child runs of child runs, each with what its own parent granted. */
function Below({
  nodes,
  depth,
}: {
  readonly nodes: readonly RunNode[]
  readonly depth: number
}): JSX.Element | null {
  if (nodes.length === 0) return null
  return (
    <ul style={{ paddingLeft: '16px' }}>
      {nodes.map(({ runId, agent, status, grant = {}, tokens, costUsd, children }) => (
        <li key={runId}>
          <GrantLine {...{ runId, name: agent, status, grant, tokens, costUsd }} />
          {depth < 16 && <Below nodes={children} depth={depth + 1} />}
        </li>
      ))}
    </ul>
  )
}
