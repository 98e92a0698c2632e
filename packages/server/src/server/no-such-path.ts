/** A request by its method and path. */
export interface AskedPath {
  readonly method: string
  readonly path: string
}

/**
 * Says that a path is not served, and where the paths of the server begin if the request expects them elsewhere. `roots`
 * are the first segments of its routes.
 */
export function noSuchPath({ method, path }: AskedPath, basePath: string, roots: readonly string[]): string {
  const isBelow = path === basePath || path.startsWith(`${basePath}/`)
  const segments = path.slice(isBelow ? basePath.length : 0).split('/')
  const index = segments.findIndex((segment, at) => at > 0 && segment !== '' && roots.includes(segment))
  const route = index < 0 ? undefined : `/${segments.slice(index).join('/')}`
  const mounted = path.slice(0, path.length - (route?.length ?? 0))
  const none = `There is no ${method} ${shown(path)}`
  const isElsewhere = route !== undefined && mounted !== basePath
  if (isBelow && !isElsewhere) return `${none}. GET ${basePath}/openapi.json describes every path.`
  const begin = basePath === '' ? 'at the root, since it has no basePath' : `with ${basePath}, its basePath`
  const all = `${none}: the paths of this server begin ${begin}.`
  if (!isElsewhere) return `${all} Send the request there.`
  const change = mounted === '' ? 'leave basePath out' : `give createServer the basePath ${shown(mounted)}`
  return `${all} Send ${method} ${shown(basePath + route)}, or ${change} if requests are to begin so.`
}

function shown(path: string): string {
  return path.slice(0, 200)
}
