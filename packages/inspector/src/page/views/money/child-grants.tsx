import type { JSX } from 'preact'
import type { RunNode } from '../../../api.ts'
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
        {grants.map((child) => (
          <li key={child.childRunId}>
            <Grant child={child} node={nodes.get(child.childRunId)} />
            <Below nodes={nodes.get(child.childRunId)?.children ?? []} depth={1} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function Grant({
  child: { childRunId, name, seq, grant, spent },
  node,
}: {
  readonly child: ChildGrant
  readonly node: RunNode | undefined
}): JSX.Element {
  const cost = spent?.costUsd ?? node?.costUsd
  const part = readPart(grant, spent?.tokens, cost)
  const isOver = part !== undefined && part > 1
  return (
    <div class="grant">
      {node ? <StatusSign status={node.status} /> : <span />}
      <button
        type="button"
        class="quiet"
        onClick={() => go({ run: childRunId, at: undefined, call: undefined })}
      >
        {showHidden(node?.agent ?? name)}
      </button>
      <button type="button" class="quiet soft" title="Go to its start" onClick={() => goTo(seq)}>
        {seq}
      </button>
      <span
        class={isOver ? 'meter full' : 'meter'}
        role="img"
        aria-label={part === undefined ? 'no bound' : `${Math.round(part * 100)}% of its grant`}
      >
        <span class="spent" style={{ width: `${Math.min(100, (part ?? 0) * 100)}%` }} />
      </span>
      <span class="num">
        {spent?.isEstimated && <Estimate why="Its parent counted before it had ended" />}
        {cost === undefined
          ? spent
            ? `${formatTokens(spent.tokens)} tokens`
            : 'under way'
          : formatCost(cost)}
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

/** Child runs of child runs: their grants are in their parents' events, so only what they used is shown. */
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
      {nodes.map((node) => (
        <li key={node.runId}>
          <div class="grant">
            <StatusSign status={node.status} />
            <button
              type="button"
              class="quiet"
              onClick={() => go({ run: node.runId, at: undefined, call: undefined })}
            >
              {showHidden(node.agent)}
            </button>
            <span class="num">{node.costUsd === undefined ? '' : formatCost(node.costUsd)}</span>
          </div>
          {depth < 16 && <Below nodes={node.children} depth={depth + 1} />}
        </li>
      ))}
    </ul>
  )
}
