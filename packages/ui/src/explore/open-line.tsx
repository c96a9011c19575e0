import { answer } from "../answer/ask.js";
import { filterBy, shareLink } from "../answer/clicks.js";
import { closeLine, moveBy, opened, shownLines, tab } from "../answer/list-state.js";
import { editQuery } from "../answer/run.js";
import { Context } from "../lines/context.js";
import { Detail } from "../lines/detail.js";
import { anchorOf } from "../lines/paging.js";
import { Similar } from "../lines/similar.js";
import { selectorText } from "../query/derive.js";
import { addStage } from "../query/edit.js";
import { config } from "../state/config.js";
import { draft, navigate, route, zone } from "../state/explore.js";

/** The panel of the line that is open. */
export default function OpenLine() {
  const line = opened.value;
  const found = answer.value;
  if (line === undefined) return null;
  const { cols } = route.value;
  return (
    <Detail
      line={line}
      zone={zone.value}
      tab={tab.value}
      links={config.value.links}
      columns={cols}
      onTab={(name) => (tab.value = name)}
      onMove={moveBy}
      onClose={closeLine}
      onFilter={filterBy}
      onColumn={(name) =>
        navigate(
          { cols: cols.includes(name) ? cols.filter((one) => one !== name) : [...cols, name] },
          "replace",
        )
      }
      onShare={() => shareLink(anchorOf(line))}
      context={() => <Context line={line} />}
      similar={() =>
        found?.log === undefined ? null : (
          <Similar
            line={line}
            selector={selectorText(found.log)}
            span={found.span}
            shown={shownLines}
            isMined={config.value.patterns}
            onStage={(stage) => editQuery(addStage(draft.peek(), stage))}
          />
        )
      }
    />
  );
}
