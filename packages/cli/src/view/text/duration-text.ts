/** A length of time, for people: `850 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** The same in at most six columns: `850ms`, `1.2s`, `3m20s`, `2h05m`, `12d`. */
export function shortDurationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`
  const seconds = Math.round(ms / 1_000)
  const two = (count: number): string => `${count}`.padStart(2, '0')
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
  return `${Math.round(minutes / (24 * 60))}d`
}
