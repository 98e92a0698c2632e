/** Where an object keeps what its late fields are read with. */
const readers = Symbol('readers')

/** What reads each of these fields. */
type Readers<Fields> = { readonly [Name in keyof Fields]: () => Fields[Name] }

/**
 * Makes what gives objects fields of these names that are read when they are asked for.
 *
 * All these objects share the functions of the fields. With a function of its own each object would get a hidden class of its
 * own, which V8 keeps in its old generation: all that the function holds, such as a run that has ended, would stay in memory
 * until the next full collection.
 */
export function lateFields<Fields extends object>(
  names: readonly (keyof Fields & string)[],
): <Given extends object>(given: Given, fields: Readers<Fields>) => Given & Fields {
  const described = names.map((name) => {
    const get = function (this: { readonly [readers]: Readers<Fields> }): unknown {
      return this[readers][name]()
    }
    return [name, { get, enumerable: true, configurable: true }] as const
  })
  return (given, fields) => {
    Object.defineProperty(given, readers, { value: fields })
    for (const [name, field] of described) Object.defineProperty(given, name, field)
    return given as typeof given & Fields
  }
}
