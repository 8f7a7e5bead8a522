"""Promises about the word of a person: what waits for it, who gives it, and that it counts once."""

from tests.promises.requirement import Requirement

_COMMANDS = "spec/commands.md, 6"
_FAULTS = "spec/commands.md, 11"
_PEOPLE = "spec/security.md, 5"
_THREATS = "spec/security.md, 12"
_CONSENT = "spec/console.md, 1"
_APPROVALS = "spec/console.md, 5"
_SCENES = "spec/console.md, 8.2"

PROMISES = {
    "CMD-5": Requirement(
        "A refused call leaves its entry, and the approval it opened or ended; nothing else.",
        source="spec/commands.md, 3",
    ),
    "CMD-11": Requirement(
        "What is risky or cannot be taken back waits for a person's word on exactly this call.",
        source=_COMMANDS,
    ),
    "CMD-12": Requirement(
        "Where somebody else has to decide, neither the requester nor who acted before can.",
        source=_COMMANDS,
    ),
    "CMD-13": Requirement(
        "Of two decisions one counts; who is second reads how it ended.", source=_COMMANDS
    ),
    "CMD-14": Requirement(
        "What runs is what was approved, once; what changed meanwhile does not run.",
        source=_COMMANDS,
    ),
    "CMD-15": Requirement(
        "An approval ends by itself, by its requester or with its turn, and never comes back.",
        source=_COMMANDS,
    ),
    "CMD-16": Requirement(
        "What runs has the effect that was shown, or it does not run.", source=_COMMANDS
    ),
    "CMD-17": Requirement(
        "Each decision and each end of an approval is in the trail, with who did it.",
        source="spec/commands.md, 7",
    ),
    "CMD-28": Requirement(
        "Whoever may decide may change the arguments first; only what they then see can run.",
        source=_COMMANDS,
    ),
    "CMD-F13": Requirement("An approved call runs exactly once, however many try.", source=_FAULTS),
    "CMD-F14": Requirement("An approval of one call is none for another.", source=_FAULTS),
    "CMD-F16": Requirement(
        "A request that nobody may decide waits until it expires; nobody approves their own.",
        source=_FAULTS,
    ),
    "SEC-36": Requirement(
        "A decision is one person's click in a browser, on what was displayed, once.",
        source=_PEOPLE,
    ),
    "SEC-T5": Requirement("Nobody becomes an approver by writing so.", source=_THREATS),
    "SEC-T6": Requirement(
        "One byte other than what was approved, and it does not run.", source=_THREATS
    ),
    "SEC-T7": Requirement(
        "An approval cannot be used again, by nobody and nowhere.", source=_THREATS
    ),
    "SEC-T8": Requirement("Approve and deny at the same moment are one decision.", source=_THREATS),
    "SEC-T40": Requirement(
        "Duties stay apart, whichever of a person's agents did the first part.", source=_THREATS
    ),
    "UI-14": Requirement(
        "Assent is one click on one exact call: no address, message or token gives it.",
        source=_CONSENT,
    ),
    "UI-15": Requirement(
        "Who approved is who sat at the browser; no field says otherwise.", source=_CONSENT
    ),
    "UI-63": Requirement(
        "Each end of a request says who, when and why, with a word of its own.", source=_APPROVALS
    ),
    "UI-64": Requirement(
        "The number beside the inbox is what one may decide now.", source=_APPROVALS
    ),
    "UI-65": Requirement(
        "The inbox and the permalink tell of the same row; when all is over the permalink still "
        "tells the whole story.",
        source=_APPROVALS,
    ),
    "UI-66": Requirement(
        "Two buttons, two tabs, two people: one decision, which all of them read.",
        source=_APPROVALS,
    ),
    "UI-67": Requirement(
        "The reason of a denial reaches whoever asked, word for word.", source=_APPROVALS
    ),
    "UI-68": Requirement(
        "An edited request says by whom, and shows each value before and after.",
        source=_APPROVALS,
    ),
    "UI-70": Requirement(
        "Several requests are all there, what expires first on top.", source=_APPROVALS
    ),
    "UI-71": Requirement(
        "What cannot be recovered from needs its name typed and a recent sign-in.",
        source=_APPROVALS,
    ),
    "UI-72": Requirement(
        "The card says what, for whom, with which arguments and which effect, then asks.",
        source=_APPROVALS,
    ),
    "UI-73": Requirement(
        "Text of others cannot pose as the card, and what is not shown in full is not approved.",
        source=_APPROVALS,
    ),
    "UI-74": Requirement("No key approves, and Enter in no field does.", source=_APPROVALS),
    "UI-75": Requirement(
        "A request that arrives takes neither the focus nor a key.", source=_APPROVALS
    ),
    "UI-77": Requirement(
        "The button counts once the card was in view, read to its end, and typed where asked.",
        source=_APPROVALS,
    ),
    "UI-78": Requirement("One press is one decision.", source=_APPROVALS),
    "UI-79": Requirement("The inbox is walked by keys, none of which approves.", source=_APPROVALS),
    "UI-80": Requirement(
        "The time that is left is counted on the server's clock; at its end the buttons go.",
        source=_APPROVALS,
    ),
    "UI-81": Requirement(
        "A request about something that changed says so, and is prepared again by one click.",
        source=_APPROVALS,
    ),
    "UI-92": Requirement(
        "How long a request lives is said at its start and counted where everybody sees it.",
        source="spec/console.md, 6",
    ),
    "CON-23": Requirement(
        "A double click on the verb is one decision, and the button says that it is on its way.",
        source=_SCENES,
    ),
    "CON-24": Requirement("Two presses on a slow network are one request.", source=_SCENES),
    "CON-25": Requirement(
        "A denial after the approval changes nothing, and says so.",
        source=_SCENES,
    ),
    "CON-26": Requirement(
        "A request whose time ran out expired, everywhere, and was never rejected by anybody.",
        source=_SCENES,
    ),
    "CON-27": Requirement(
        "A card of a run that ended turns into its outcome, and so does a click on its way.",
        source=_SCENES,
    ),
    "CON-28": Requirement(
        "At the second of its end a request has no buttons, however busy the agent is.",
        source=_SCENES,
    ),
    "CON-29": Requirement(
        "Who comes second reads how it ended, on a card with nothing disabled.",
        source=_SCENES,
    ),
    "CON-30": Requirement(
        "A request near its end is counted down, and whoever may decide is told again.",
        source=_SCENES,
    ),
    "CON-31": Requirement(
        "What was approved and not begun is starting, and not done.",
        source=_SCENES,
    ),
    "CON-32": Requirement(
        "Keys that are typed while a request arrives are text, all of them.",
        source=_SCENES,
    ),
    "CON-33": Requirement(
        "Keys that were pressed before the request was in view do nothing in it.",
        source=_SCENES,
    ),
    "CON-34": Requirement("The press that brings the window back decides nothing.", source=_SCENES),
    "CON-35": Requirement(
        "Editing keys in reason, typed name and edit form neither decide nor close.",
        source=_SCENES,
    ),
    "CON-36": Requirement(
        "Ctrl or Cmd with Enter sends the draft and decides nothing.",
        source=_SCENES,
    ),
    "CON-37": Requirement(
        "A request that is opened and left leaves the draft as it was, with its caret.",
        source=_SCENES,
    ),
    "CON-38": Requirement(
        "A long value is read in full by keyboard; an empty one that is needed is not assented to.",
        source=_SCENES,
    ),
    "CON-39": Requirement(
        "With huge arguments on a small screen the buttons stay, and the values scroll.",
        source=_SCENES,
    ),
    "CON-40": Requirement(
        "A message during a request waits for the decision, and both ways out work.",
        source=_SCENES,
    ),
    "CON-41": Requirement("After a denial the agent goes on.", source=_SCENES),
    "CON-43": Requirement(
        "A call that fails after its approval says so, and the same command asks anew.",
        source=_SCENES,
    ),
    "CON-44": Requirement(
        "Edited arguments are what is checked, shown, run and put on record.",
        source=_SCENES,
    ),
    "CON-45": Requirement("The same command is asked for again, each time.", source=_SCENES),
    "CON-42": Requirement("A denied call is never made, also not after a restart.", source=_SCENES),
    "CON-46": Requirement(
        "A yes for one agent and conversation is none for another.", source=_SCENES
    ),
    "CON-47": Requirement(
        "A request that is open over a restart is decided, and its run goes on.", source=_SCENES
    ),
    "CON-48": Requirement(
        "A late answer after a failure reads what happened and what comes next, also later.",
        source=_SCENES,
    ),
    "CON-49": Requirement("Of three requests the buttons of each act on each.", source=_SCENES),
    "CON-50": Requirement(
        "Of three requests one is decided, and the others stay open and whole.",
        source=_SCENES,
    ),
    "CON-51": Requirement("Several calls that wait are each read in full.", source=_SCENES),
    "CON-52": Requirement(
        "Two requests at the same moment are both seen and both warned of.",
        source=_SCENES,
    ),
    "CON-58": Requirement(
        "A reason arrives as it was written, whatever stands in it.",
        source=_SCENES,
    ),
}
