/** The same function, which keeps what it made of each object for as long as the object lives. */
export function memoized<Given extends object, Made>(make: (given: Given) => Made): (given: Given) => Made {
  const made = new WeakMap<Given, { readonly value: Made }>()
  return (given) => {
    let kept = made.get(given)
    if (kept === undefined) made.set(given, (kept = { value: make(given) }))
    return kept.value
  }
}
