import type { TurnChange, TurnRequest } from '../../machine/rules.ts'
import { mergedSettings } from '../../events/model-request.ts'
import { isAsync, isThenable } from '../../values/option.ts'
import { omitUndefined } from '../../values/json.ts'
import type { PrepareTurn } from './agent.ts'

/** Two preparations of a turn, one after the other: the second sees the request that the first makes. */
export function preparedInTurn(
  first: PrepareTurn | undefined,
  second: PrepareTurn | undefined,
): PrepareTurn | undefined {
  if (first === undefined || second === undefined) return first ?? second
  const both: PrepareTurn = (turn, context) => {
    const then = (change: TurnChange | undefined): ReturnType<PrepareTurn> => {
      const more = second({ ...turn, request: requestWith(turn.request, change) }, context)
      return isThenable(more) ? more.then((each) => joined(change, each)) : joined(change, more)
    }
    const change = first(turn, context)
    return isThenable(change) ? change.then(then) : then(change)
  }
  // That it waits is seen of it without a call, as of each of the two.
  return isAsync(first) || isAsync(second) ? async (turn, context) => await both(turn, context) : both
}

function requestWith(request: TurnRequest, change: TurnChange | undefined): TurnRequest {
  if (change == null) return request
  const { tools, modelSettings, ...others } = change
  const names = tools?.map((tool) => (typeof tool === 'string' ? tool : tool.name))
  return {
    ...request,
    ...omitUndefined(others),
    ...omitUndefined({ modelSettings: mergedSettings(request.modelSettings, modelSettings) }),
    tools: names ? request.tools.filter(({ name }) => names.includes(name)) : request.tools,
  }
}

function joined(first: TurnChange | undefined, second: TurnChange | undefined): TurnChange | undefined {
  if (first == null || second == null) return second ?? first
  const modelSettings = mergedSettings(first.modelSettings, second.modelSettings)
  return { ...first, ...omitUndefined({ ...second }), ...omitUndefined({ modelSettings }) }
}
