from list_for_two import inputs as images
from list_for_two import model as model


def inputs(batch_size=2):
    return (images(batch_size),)
