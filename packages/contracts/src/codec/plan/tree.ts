import { damaged, type MessageCodec, mapped, message, repeated } from "@skald/transport/protobuf";

/** A node without what is below it. */
export type Flat<Node> = Node extends { readonly left: unknown }
  ? Omit<Node, "left" | "right">
  : Node extends { readonly inner: unknown }
    ? Omit<Node, "inner">
    : Node;

interface AnyNode {
  readonly kind: string;
}

/**
 * A tree as a list of its nodes, what is below a node before it: so a deep tree is no deep message. `below` names, for
 * the kinds that have any, the properties that hold nodes, in order.
 */
export function tree<Node extends AnyNode>(
  node: MessageCodec<Flat<Node>>,
  below: Readonly<Partial<Record<Node["kind"], readonly string[]>>>,
): MessageCodec<Node> {
  const namesOf = (one: unknown): readonly string[] =>
    below[(one as Node).kind as Node["kind"]] ?? [];
  return mapped<Node, { readonly nodes: readonly Flat<Node>[] }>(
    message<{ readonly nodes: readonly Flat<Node>[] }>({ nodes: repeated(1, node) } as never),
    (root) => {
      const nodes: unknown[] = [];
      const open: unknown[] = [root];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        nodes.push(next);
        for (const name of namesOf(next)) open.push((next as Record<string, unknown>)[name]);
      }
      return { nodes: nodes.reverse() as Flat<Node>[] };
    },
    ({ nodes }) => {
      const done: unknown[] = [];
      for (const one of nodes) {
        const names = namesOf(one);
        if (names.length > done.length) throw damaged("a tree lacks nodes");
        const children = done.splice(done.length - names.length);
        done.push(
          names.length === 0
            ? one
            : { ...one, ...Object.fromEntries(names.map((name, i) => [name, children[i]])) },
        );
      }
      if (done.length !== 1) throw damaged("a tree does not have one root");
      return done[0] as Node;
    },
  );
}
